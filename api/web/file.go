package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web/lex"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

var (
	fileTemplate = layout.Parse(templates, "templates/file.html", "templates/place.html")
	treeTemplate = layout.Parse(templates, "templates/tree.html", "templates/place.html")
)

// The shape of a file's page: blocks that a browser lays out only where they are
// seen, so that the largest file opens at once and can still be searched by the
// browser's own means.
const (
	blockLines    = 200
	colouredSpans = 2500 // from the start; the rest is plain until it comes near the window
	linesBefore   = 2000 // that are read for what they leave open, where a block is coloured alone
	mostSymbols   = 250
	mostShown     = 8 << 20  // bytes of a file on a page
	longestShown  = 16 << 10 // bytes of a line
)

// file is the page of one file.
func (p *Pages) file(ctx context.Context, v *layout.Visit, l place) error {
	if v.Part == "block" {
		return p.block(ctx, v, l)
	}
	src, err := p.Files.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}

	data := struct {
		place
		Commit, Short, Permalink, External string
		Language, Size, Lines              string
		Forged                             int
		Tab                                int
		Binary, Image, LFS, Cut            bool
		Here                               string // query that finds in this file only
		Code                               template.HTML
		Symbols                            []symbolRow
		Beside                             []leaf
	}{
		place: l, Commit: src.Commit, Short: short(src.Commit), Permalink: address(l.Repo, src.Commit, "blob", l.Path), External: src.ExternalWebURL,
		Language: src.Language, Size: sizeOf(src.Size), Lines: counted(src.Total, "line", "lines"), Binary: src.Binary, LFS: src.LFS, Tab: 4,
	}
	if src.Language == "Go" || src.Language == "Makefile" {
		data.Tab = 8
	}
	_, data.Image = imageTypes[strings.ToLower(path.Ext(l.Path))]
	if !src.Binary {
		text := src.Content
		if len(text) > mostShown {
			text, data.Cut = text[:mostShown], true
		}
		data.Forged = layout.Forged(text)
		data.Code = template.HTML(appendBlocks(make([]byte, 0, len(text)*2), text, src.Language))
		data.Symbols = p.symbols(ctx, v, l)
		data.Beside = p.beside(ctx, v, l)
		data.Here = "reposet:" + query.Quote(l.Repo) + " file:" + fieldRegexp("^"+quoteMeta(l.Path)+"$")
		if l.Rev != "" {
			data.Here += " rev:" + query.Quote(l.Rev)
		}
	}
	return v.Show(layout.Head{Title: l.Path, Page: "file", Scripts: []string{"js/file.js"}}, fileTemplate, data)
}

// block is the part of a file's page that a script asks for when the block whose
// first line the address names comes near the window: its lines with colours.
func (p *Pages) block(ctx context.Context, v *layout.Visit, l place) error {
	first, err := strconv.Atoi(v.Query.Get("first"))
	if err != nil || first < 1 {
		return call.Fail(call.ErrInvalid, "first is the number of a line, from 1.")
	}
	before := min(first-1, linesBefore)
	src, err := p.Files.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, FirstLine: first - before, Lines: before + blockLines})
	if err != nil {
		return err
	}

	// The lines before tell what is open where the block begins.
	paint := newPainter(src.Language, 0)
	if first-before > 1 {
		paint.state = paint.lang.Enter(src.Content)
	}
	text := src.Content
	for range before {
		var line []byte
		line, text, _ = nextLine(text)
		paint.left = colourBlock
		paint.colours(line)
	}

	paint.left = colourBlock
	b := []byte(`<div class="block"><pre class="text">`)
	for len(text) > 0 {
		var line []byte
		line, text, _ = nextLine(text)
		b = appendShown(b, line, paint.colours(line))
	}
	v.Mime, v.Body = layout.MimeHTML, append(b, "</pre></div>"...)
	return nil
}

// appendBlocks appends a file as blocks of numbers and lines.
//
//	<div class="block"><pre class="nums">1 2 ... 200</pre><pre class="text">...</pre></div>
func appendBlocks(dst, text []byte, language string) []byte {
	paint := newPainter(language, 0)
	anchors := bytes.Count(text, []byte{'\n'}) <= 2000
	var lines []byte
	number, spans := 1, 0
	for len(text) > 0 {
		first, plain := number, spans > colouredSpans
		lines = lines[:0]
		for ; number < first+blockLines && len(text) > 0; number++ {
			var line []byte
			line, text, _ = nextLine(text)
			if plain {
				lines = appendShown(lines, line, nil)
				continue
			}
			colours := paint.colours(line)
			lines, spans = appendShown(lines, line, colours), spans+len(colours)
		}

		dst = append(dst, `<div class="block`...)
		if number-first == blockLines {
			dst = append(dst, " full"...)
		}
		if plain {
			dst = append(dst, " plain"...)
		}
		dst = fmt.Appendf(dst, `" data-first="%d"><pre class="nums" aria-hidden="true">`, first)
		for n := first; n < number; n++ {
			if anchors {
				dst = fmt.Appendf(dst, "<span id=\"L%d\">%d</span>\n", n, n)
			} else {
				dst = append(appendInt(dst, n), '\n')
			}
		}
		dst = append(append(append(dst, `</pre><pre class="text">`...), lines...), "</pre></div>\n"...)
	}
	return dst
}

// appendShown appends a line with its end. Of a very long one it shows the
// beginning, and says how much there is besides.
func appendShown(dst, line []byte, colours []lex.Span) []byte {
	if len(line) > longestShown {
		dst = appendCode(dst, line[:longestShown], nil, nil)
		return fmt.Appendf(dst, "<span class=\"cut\">%s bytes more: see the raw file</span>\n", grouping(len(line)-longestShown))
	}
	return append(appendCode(dst, line, colours, nil), '\n')
}

// symbolRow is a definition in the outline of a file.
type symbolRow struct {
	Name, Kind string
	Line       int
	References string
}

// symbols is the outline of a file, empty where there is none to be had.
func (p *Pages) symbols(ctx context.Context, v *layout.Visit, l place) []symbolRow {
	r, err := p.Trees.Outline(ctx, v.Viewer, browse.OutlineRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if err != nil || len(r.Files) != 1 {
		return nil
	}
	out := make([]symbolRow, 0, len(r.Files[0].Symbols))
	for _, s := range r.Files[0].Symbols[:min(len(r.Files[0].Symbols), mostSymbols)] {
		out = append(out, symbolRow{s.Name, s.Kind, s.First, l.At("names", "") + "?" + namesQuery(s.Name, false)})
	}
	return out
}

// tree is the page of a directory, with its README.
func (p *Pages) tree(ctx context.Context, v *layout.Visit, l place) error {
	r, err := p.Trees.ListTree(ctx, v.Viewer, browse.ListTreeRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Sizes: true, MaxEntries: browse.MaxEntries})
	if err != nil {
		return err
	}

	type entry struct{ Name, URL, Kind, Size string }
	data := struct {
		place
		CommitURL, Short string
		Entries          []entry
		Cut              bool
		Readme           string
		Text             template.HTML
	}{place: l, CommitURL: address(l.Repo, "", "commit", r.Commit), Short: short(r.Commit), Cut: r.Cut}
	for _, e := range r.Entries {
		row := entry{Name: e.Name, Kind: e.Type, URL: l.At("blob", e.Path)}
		if e.Type == "tree" {
			row.URL = l.At("tree", e.Path)
		} else {
			row.Size = sizeOf(int64(e.Size))
		}
		data.Entries = append(data.Entries, row)
		if name := strings.ToLower(e.Name); data.Readme == "" && e.Type != "tree" && (name == "readme" || strings.HasPrefix(name, "readme.")) {
			data.Readme = e.Path
		}
	}
	if data.Readme != "" {
		if src, err := p.Files.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: data.Readme, Ref: l.Rev}); err == nil && !src.Binary {
			data.Text = layout.Text(string(src.Content[:min(len(src.Content), 512<<10)]))
		}
	}
	title := l.Repo
	if l.Path != "" {
		title = l.Path
	}
	return v.Show(layout.Head{Title: title, Page: "tree", Scripts: []string{"js/file.js"}}, treeTemplate, data)
}

// imageTypes is what a browser may show of a repository as it is.
var imageTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon", ".svg": "image/svg+xml",
}

// rawPolicy lets nothing in a raw file run or load.
const rawPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// raw is the bytes of a file: images and text are shown, everything else is
// handed over as a file, so that nothing of a repository runs in this site.
func (p *Pages) raw(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.Files.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if err != nil {
		return err
	}
	v.Set("Content-Security-Policy", rawPolicy)
	tag := `"` + src.OID + `"`
	v.Set("ETag", tag)
	v.Set("Cache-Control", "private, no-cache")
	if src.OID != "" && v.Sent("If-None-Match") == tag {
		v.Status = http.StatusNotModified
		return nil
	}

	v.Body, v.Mime = src.Content, "text/plain; charset=utf-8"
	if mime := imageTypes[strings.ToLower(path.Ext(l.Path))]; mime != "" {
		v.Mime = mime
	} else if src.Binary {
		v.Mime = "application/octet-stream"
		v.Set("Content-Disposition", "attachment")
	}
	return nil
}

func short(commit string) string { return commit[:min(len(commit), 10)] }

// noPath fails for a kind of page that needs a path.
func noPath() error { return call.Fail(call.ErrNotFound, "The address names no commit.") }

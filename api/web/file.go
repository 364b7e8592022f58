package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

var fileTemplate = layout.Parse(templates, "templates/file.html", "templates/place.html")

// Limits of a file's page. It consists of blocks, which a browser lays out only while they are visible.
// So the largest file opens at once, and the browser can still search in it.
const (
	blockLines    = 200
	colouredSpans = 2500             // coloured runs on a page; a script requests the colours of later blocks
	mostShown     = 8 << 20          // bytes of a file on a page
	longestShown  = 16 << 10         // bytes of a line
	streamedFrom  = 256 << 10        // bytes of the smallest file whose page is sent block by block
	mostStreaming = 10 * time.Minute // how long a reader may take to receive such a page
)

var errSlowReader = errors.New("the reader is too slow")

// file shows the page of a file, or answers a script with a block of it. With now=LINE it redirects to
// where the line is in HEAD. A directory's address it redirects to the directory's page.
func (p *sources) file(ctx context.Context, v *layout.Visit, l place) error {
	if v.Part == "block" {
		return p.block(ctx, v, l)
	}
	if line, err := strconv.Atoi(v.Query.Get("now")); err == nil && line > 0 {
		return p.redirectToHead(ctx, v, l, line)
	}
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev})
	if errors.Is(err, call.ErrFileNotFound) && p.isDirectory(ctx, v, l) {
		return v.Redirect(http.StatusFound, l.At("tree", l.Path))
	}
	if err != nil {
		return err
	}

	data := newFilePage(l, src)
	data.Beside = p.treeBeside(ctx, v, l)
	var code *blocks
	if !src.Binary {
		code = p.addText(ctx, v, data, src)
		data.EmbedLines = min(src.Total, maxEmbedded)
	}
	if p.framed && data.EmbedLines > 0 {
		data.Embed = embedAddress(p.base(), l.Repo, src.Commit, l.Path)
	}

	head := layout.Head{Title: l.Path, Page: "file", Scripts: []string{"js/file.js"}}
	if code != nil {
		return p.streamFile(ctx, v, l, head, data, code)
	}
	return v.Show(head, fileTemplate, data)
}

// redirectToHead redirects from a line of a commit to where it is in HEAD, or to the lines that replaced
// it. For a file that HEAD does not have, it redirects to the file's page, which says where it went.
func (p *sources) redirectToHead(ctx context.Context, v *layout.Visit, l place, line int) error {
	page := address(l.Repo, "", "blob", l.Path)
	r, err := p.reader.Diff(ctx, v.Viewer, browse.DiffRequest{Repo: l.Repo, Base: cmp.Or(l.Rev, "HEAD"), Head: "HEAD", Path: l.Path, Context: -1})
	switch {
	case errors.Is(err, call.ErrFileNotFound):
		return v.Redirect(http.StatusSeeOther, page)
	case err != nil:
		return err
	}
	for i := range r.Files {
		if f := &r.Files[i]; f.NewPath == l.Path {
			line = lineAfter(f.Hunks, line)
		}
	}
	return v.Redirect(http.StatusSeeOther, lineOf(page, l.Path, line))
}

// lineAfter returns the number of a line after the changes of hunks, which have no context. For a
// removed line it returns the line in its place.
func lineAfter(hunks []browse.DiffHunk, line int) int {
	shift := 0
	for _, h := range hunks {
		switch {
		case h.OldLines > 0 && line >= h.OldStart && line < h.OldStart+h.OldLines:
			return max(1, h.NewStart+min(line-h.OldStart, max(0, h.NewLines-1)))
		case line > h.OldStart:
			shift += h.NewLines - h.OldLines
		}
	}
	return line + shift
}

// filePage is the data of a file's page.
type filePage struct {
	place
	Commit, Short, Permalink, External string
	Embed                              string // address for pages of other sites that embed it; "" if they may not
	EmbedLines                         int    // number of lines that such a page shows
	Language, Encoding, Size, Lines    string
	Forged                             int // number of characters that make the text look like another one
	Tab                                int
	Binary, Image, LFS, Cut, Link      bool
	LinkURL                            string // page of a symbolic link's target; "" if that is outside of the repository
	Here                               string // query that searches in this file only
	Code                               template.HTML
	Aside                              template.HTML // the outline
	Markdown                           bool          // the file can be shown as a document
	Document                           *document     // the file as a document; nil if its source is shown
	Refused                            string        // why a document is shown as source
	Beside                             []leaf        // the tree beside the file
}

// Asking returns the start of a question about lines of the file, for an address. LINES is the
// placeholder for their numbers.
func (f *filePage) Asking() string {
	return url.QueryEscape("About "+f.Repo+" "+f.Path+":") + "LINES" + url.QueryEscape(" at "+f.Short+": ") + "&repos=" + url.QueryEscape(f.Repo)
}

// Came returns the beginning of a search for the commits that added a line, for an address. TEXT stands
// for the line.
func (f *filePage) Came() string {
	return url.QueryEscape("type:diff reposet:"+valueOf(f.Repo)+" added:") + "TEXT"
}

// newFilePage returns the page of a file, still without its text.
func newFilePage(l place, src *browse.SourceResponse) *filePage {
	page := &filePage{
		place:     l,
		Commit:    src.Commit,
		Short:     short(src.Commit),
		Permalink: address(l.Repo, src.Commit, "blob", l.Path),
		External:  src.ExternalWebURL,
		Language:  src.Language,
		Encoding:  src.Encoding,
		Size:      sizeOf(src.Size),
		Lines:     counted(src.Total, "line", "lines"),
		Binary:    src.Binary,
		LFS:       src.LFS,
		Tab:       tabOf(src.Language),
	}
	if page.Link = src.Link; page.Link {
		if at, ok := paths.LinkTarget(src.Path, string(src.Content)); ok {
			page.LinkURL = l.At("blob", at)
		}
	}
	_, page.Image = imageTypes[strings.ToLower(path.Ext(l.Path))]
	return page
}

// tabOf returns the width of a tab in a language.
func tabOf(language string) int {
	if language == "Go" || language == "Makefile" {
		return 8
	}
	return 4
}

// addText adds the text of a file to its page: as a document, or as lines with an outline. For a large
// file it adds marks instead, and returns the blocks to send in their place; otherwise nil.
func (p *sources) addText(ctx context.Context, v *layout.Visit, page *filePage, src *browse.SourceResponse) (code *blocks) {
	text := src.Content
	if len(text) > mostShown {
		text, page.Cut = text[:mostShown], true
	}
	page.Forged = layout.CountForged(text)

	source := markdownOf(src.Language, page.Path, text)
	if page.Markdown = source != nil; page.Markdown && asksForSource(v) {
		page.Permalink += plainQuery
	} else if page.Markdown {
		page.Document, page.Refused = p.document(ctx, page.place, page.Path, source, 1)
	}

	// The outline takes longer than the lines, so a large file is sent before it.
	switch {
	case page.Document != nil:
	case len(text) >= streamedFrom:
		page.Code, page.Aside, code = codeMark, asideMark, newBlocks(text, src.Language)
	default:
		page.Aside = p.symbols(ctx, v, page.place)
		page.Code = template.HTML(appendBlocks(make([]byte, 0, len(text)*2), text, src.Language))
	}

	page.Here = "reposet:" + query.Quote(page.Repo) + " file:" + fieldRegexp("^"+quoteMeta(page.Path)+"$")
	if page.Rev != "" {
		page.Here += " rev:" + query.Quote(page.Rev)
	}
	return code
}

// asksForSource reports whether the address requests the source of a document, or some of its lines.
func asksForSource(v *layout.Visit) bool {
	return v.Query.Get("plain") == "1" || v.Query.Get("highlightRange") != ""
}

// isDirectory reports whether a place is a directory. Links in documents lead to the page of a file,
// even if their target is a directory.
func (p *sources) isDirectory(ctx context.Context, v *layout.Visit, l place) bool {
	_, err := p.reader.ListTree(ctx, v.Viewer, browse.ListTreeRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, MaxEntries: 1})
	return err == nil
}

// block answers a script with the block of a file whose first line is in the address: its lines,
// coloured. Scripts request blocks as they scroll into view.
func (p *sources) block(ctx context.Context, v *layout.Visit, l place) error {
	first, err := strconv.Atoi(v.Query.Get("first"))
	if err != nil || first < 1 {
		return call.Fail(call.ErrInvalid, "first is the number of a line, from 1.")
	}
	src, paint, err := p.readLines(ctx, v, l, first, blockLines)
	if err != nil {
		return err
	}
	text := src.Content

	b := []byte(`<div class="block"><pre class="text">`)
	for len(text) > 0 {
		var line []byte
		line, text, _ = nextLine(text)
		b = appendShown(b, line, paint.colours(line))
	}
	v.Mime, v.Body = layout.MimeHTML, append(b, "</pre></div>"...)
	return nil
}

// blocks draws a file block by block.
type blocks struct {
	text    []byte // not drawn yet
	number  int    // line number of the start of text
	spans   int    // coloured runs drawn so far
	paint   *painter
	anchors bool   // draw an element for each line number, so that addresses can lead to it
	lines   []byte // buffer for the lines of a block
}

func newBlocks(text []byte, language string) *blocks {
	return &blocks{text: text, number: 1, paint: newPainter(language, 0), anchors: bytes.Count(text, []byte{'\n'}) <= 2000}
}

// append appends the next block of numbers and lines.
//
//	<div class="block"><pre class="nums">1 2 ... 200</pre><pre class="text">...</pre></div>
func (b *blocks) append(dst []byte) []byte {
	// A block is coloured as a whole or not at all, because the script requests the colours of blocks.
	first, plain := b.number, b.spans > colouredSpans
	b.lines = b.lines[:0]
	for ; b.number < first+blockLines && len(b.text) > 0; b.number++ {
		var line []byte
		line, b.text, _ = nextLine(b.text)
		if plain {
			b.lines = appendShown(b.lines, line, nil)
			continue
		}
		colours := b.paint.colours(line)
		b.lines, b.spans = appendShown(b.lines, line, colours), b.spans+len(colours)
	}

	dst = append(dst, `<div class="block`...)

	// The class tells the browser the height to reserve for a block that it does not lay out.
	if b.number-first == blockLines {
		dst = append(dst, " full"...)
	}
	if plain {
		dst = append(dst, " bare"...)
	}

	// Draw the line numbers as a separate column, so that copying the text does not copy them.
	dst = fmt.Appendf(dst, `" data-first="%d"><pre class="nums" aria-hidden="true">`, first)

	for n := first; n < b.number; n++ {
		// An address of a line leads to its element. In a large file a script scrolls there instead.
		if b.anchors {
			dst = append(appendInt(append(dst, `<span id="L`...), n), `">`...)
			dst = append(appendInt(dst, n), "</span>\n"...)
		} else {
			dst = append(appendInt(dst, n), '\n')
		}
	}
	return append(append(append(dst, `</pre><pre class="text">`...), b.lines...), "</pre></div>\n"...)
}

// appendBlocks appends a whole file as blocks.
func appendBlocks(dst, text []byte, language string) []byte {
	for b := newBlocks(text, language); len(b.text) > 0; {
		dst = b.append(dst)
	}
	return dst
}

// codeMark and asideMark are placeholders in a page for the blocks of a large file and its outline.
// Nothing else in a page has a zero byte.
const (
	codeMark  = "\x00code\x00"
	asideMark = "\x00aside\x00"
)

// streamFile sends the page of a large file part by part, so that its first lines arrive while it draws
// the others and makes the outline. It gives up on a reader who takes too long.
func (p *sources) streamFile(ctx context.Context, v *layout.Visit, l place, h layout.Head, data any, code *blocks) error {
	if err := v.Show(h, fileTemplate, data); err != nil {
		return err
	}

	// Draw the page with marks, by the template of small files, and split it at the marks.
	before, after, _ := bytes.Cut(v.Body, []byte(codeMark))
	between, after, _ := bytes.Cut(after, []byte(asideMark))
	v.Body = nil

	outline := inBackground(func() (template.HTML, error) { return p.symbols(ctx, v, l), nil })
	until := p.now().Add(mostStreaming)

	v.Stream = func(w *bufio.Writer) error {
		if _, err := w.Write(before); err != nil {
			return err
		}

		// Reuse one buffer for all blocks, because a drawn file is several times as large as its text.
		var block []byte
		for n := 0; len(code.text) > 0; n++ {
			block = code.append(block[:0])
			if _, err := w.Write(block); err != nil {
				return err
			}

			// Give up on a slow reader, because the file is in memory meanwhile.
			if p.now().After(until) {
				return errSlowReader
			}

			// Send the first block at once, and the others when the buffer is full.
			if n > 0 {
				continue
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}

		// Wait for the outline only now, after all lines.
		aside, err := (<-outline).get()
		if err != nil {
			return err
		}
		for _, part := range [][]byte{between, []byte(aside), after} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	return nil
}

// appendShown appends a line and a line break. It cuts a very long line, and says how much is missing.
func appendShown(dst, line []byte, colours []lex.Span) []byte {
	if len(line) > longestShown {
		dst = appendCode(dst, line[:longestShown], nil, nil)
		return fmt.Appendf(dst, "<span class=\"cut\">%s bytes more: see the raw file</span>\n", grouping(len(line)-longestShown))
	}
	return append(appendCode(dst, line, colours, nil), '\n')
}

func short(commit string) string { return commit[:min(len(commit), 10)] }

// noCommit returns the error for an address that lacks its commit.
func noCommit() error { return call.Fail(call.ErrNotFound, "The address names no commit.") }

package web

import (
	"context"
	"fmt"
	"html/template"
	"path"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web/lex"
	"github.com/shoalsearch/shoal/api/web/markdown"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/shard/query"
)

// plainQuery asks for the source of a file that is shown as a document otherwise.
const plainQuery = "?plain=1"

// leastContents is how many headings a list of them is worth.
const leastContents = 3

// document is Markdown as a page shows it.
type document struct {
	HTML     template.HTML
	Contents []markdown.Heading
}

// document draws a file of Markdown below a heading of some level. Its links and
// images are of the revision of the place. Where there is too much of it, a
// sentence says so instead.
func (p *sources) document(ctx context.Context, l place, file string, text []byte, level int) (*document, string) {
	site := p.markdownSite("md", level)
	// Links of a file are relative to its directory.
	site.Dir = strings.TrimPrefix(path.Dir("/"+file), "/")
	site.File = func(path string) string { return l.At("blob", path) }
	site.Tree = func(path string) string { return l.At("tree", path) }
	site.Raw = func(path string) string { return l.At("raw", path) }

	out, refused := drawn(ctx, text, site)
	// Of a short document a reader sees all the headings at once.
	if out != nil && len(out.Contents) < leastContents {
		out.Contents = nil
	}
	return out, refused
}

// answer draws what a model has written in a thread as its nth turn. Citations
// that were checked are links. Nothing else of the text leads into this site, and
// its HTML is text.
func (p *conversations) answer(ctx context.Context, n int, pieces []ask.Piece) (*document, string) {
	site := p.markdownSite("t"+strconv.Itoa(n), 2)
	// It is not from a repository: its HTML could be what somebody has led the model to write.
	site.Literal = true

	var text strings.Builder
	for _, piece := range pieces {
		if piece.Cite == nil {
			// A mark that the model writes itself must not become a citation.
			text.WriteString(markdown.Clean(piece.Text))
			continue
		}

		// Marks stand in the text while it is parsed, so that a citation is no Markdown.
		text.WriteString(markdown.Mark(len(site.Cites)))
		c := citePiece(piece.Cite)
		site.Cites = append(site.Cites, markdown.Cite{Label: c.Label, URL: c.URL, Note: c.Note})
	}
	return drawn(ctx, []byte(text.String()), site)
}

func (d dating) markdownSite(prefix string, level int) markdown.Site {
	return markdown.Site{Prefix: prefix, Level: level, Text: layout.AppendText, Code: appendFenced, Now: d.now}
}

func drawn(ctx context.Context, text []byte, site markdown.Site) (*document, string) {
	doc, err := markdown.Render(ctx, text, site)
	if err != nil {
		return nil, fmt.Sprintf("This document is %v, so its source is shown.", err)
	}
	return &document{HTML: template.HTML(doc.HTML), Contents: doc.Headings}, ""
}

// appendFenced appends a block of code of a document, coloured where its language
// is known.
func appendFenced(dst []byte, name string, code []byte) []byte {
	language, known := query.Language(name)
	// A painter for the whole block, since a comment may go over lines.
	paint := newPainter(language)
	for len(code) > 0 {
		var line []byte
		line, code, _ = nextLine(code)
		var colours []lex.Span
		// Of a language that nobody knows, the scanner would guess.
		if known {
			colours = paint.colours(line)
		}
		dst = append(appendCode(dst, line, colours, nil), '\n')
	}
	return dst
}

// lines is the page on which the lines of a file have addresses: that of its
// source, where it is shown as a document otherwise.
func lines(page, file string) string {
	if !isDrawn(file) {
		return page
	}

	// Before the fragment: behind it a query would be a part of it.
	before, fragment, cut := strings.Cut(page, "#")
	if cut {
		fragment = "#" + fragment
	}
	return before + plainQuery + fragment
}

// lineOf is the address of one line of a file, whose page is given.
func lineOf(page, file string, line int) string {
	return fmt.Sprintf("%s#L%d", lines(page, file), line)
}

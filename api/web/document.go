package web

import (
	"context"
	"fmt"
	"html/template"
	"path"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web/markdown"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

// plainQuery requests the source of a file that is shown as a document by default.
const plainQuery = "?plain=1"

// leastContents is the least number of headings for a table of contents.
const leastContents = 3

// document is rendered Markdown.
type document struct {
	HTML     template.HTML
	Contents []markdown.Heading
}

// document renders a Markdown file below a heading of some level. Its links and images are of the
// place's revision. If it is too large, the returned sentence says so.
func (p *sources) document(ctx context.Context, l place, file string, text []byte, level int) (*document, string) {
	site := p.markdownSite("md", level)
	// Links are relative to the file's directory.
	site.Dir = strings.TrimPrefix(path.Dir("/"+file), "/")
	site.File = func(path string) string { return l.At("blob", path) }
	site.Tree = func(path string) string { return l.At("tree", path) }
	site.Raw = func(path string) string { return l.At("raw", path) }

	out, refused := drawn(ctx, text, site)
	// A short document needs no table of contents.
	if out != nil && len(out.Contents) < leastContents {
		out.Contents = nil
	}
	return out, refused
}

// answer renders the nth turn of a thread. Checked citations are links. Nothing else in the text
// links into this site, and HTML is shown as text.
func (p *conversations) answer(ctx context.Context, n int, pieces []ask.Piece) (*document, string) {
	site := p.markdownSite("t"+strconv.Itoa(n), 2)
	// A hostile file may have made the model write HTML.
	site.Literal = true

	var text strings.Builder
	for _, piece := range pieces {
		if piece.Cite == nil {
			// A mark written by the model must not become a citation.
			text.WriteString(markdown.Clean(piece.Text))
			continue
		}

		// Marks replace citations while the text is parsed, so that citations are not read as
		// Markdown.
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

// appendFenced appends a code block of a document, coloured if its language is known.
func appendFenced(dst []byte, name string, code []byte) []byte {
	language, known := query.Language(name)
	// One painter for the whole block, because a comment may span lines.
	paint := newPainter(language, 0)
	for len(code) > 0 {
		var line []byte
		line, code, _ = nextLine(code)
		var colours []lex.Span
		// For an unknown language the lexer would guess.
		if known {
			colours = paint.colours(line)
		}
		dst = append(appendCode(dst, line, colours, nil), '\n')
	}
	return dst
}

// lines returns the address of a file's page with line anchors: its source, if it is shown as a
// document by default.
func lines(page, file string) string {
	if !isDrawn(file) {
		return page
	}

	// The query must come before the fragment.
	before, fragment, cut := strings.Cut(page, "#")
	if cut {
		fragment = "#" + fragment
	}
	return before + plainQuery + fragment
}

// lineOf returns the address of a line of a file.
func lineOf(page, file string, line int) string {
	return fmt.Sprintf("%s#L%d", lines(page, file), line)
}

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

// plainQuery is the query of an address that shows a document as source.
const plainQuery = "?plain=1"

// minContents is the number of headings from which a document gets a table of contents.
const minContents = 3

// document is rendered Markdown.
type document struct {
	HTML     template.HTML
	Contents []markdown.Heading
}

// document renders a Markdown file below a heading of a level. Links and images lead to the place's
// revision. If the text cannot be rendered, it returns nil and a sentence that says why.
func (p *sources) document(ctx context.Context, l place, file string, text []byte, level int) (*document, string) {
	site := p.markdownSite("md", level)
	// Links are relative to the file's directory.
	site.Dir = strings.TrimPrefix(path.Dir("/"+file), "/")
	site.File = func(path string) string { return l.At("blob", path) }
	site.Tree = func(path string) string { return l.At("tree", path) }
	site.Raw = func(path string) string { return l.At("raw", path) }

	out, refused := render(ctx, text, site)
	if out != nil && len(out.Contents) < minContents {
		out.Contents = nil
	}
	return out, refused
}

// answer renders the answer of the nth turn of a thread, or returns nil and a sentence that says why
// not. Only verified citations link into this site. HTML is shown as text.
func (p *conversations) answer(ctx context.Context, n int, pieces []ask.Piece) (*document, string) {
	site := p.markdownSite("t"+strconv.Itoa(n), 2)
	site.Literal = true // a hostile file may have made the model write HTML

	var text strings.Builder
	for _, piece := range pieces {
		if piece.Cite == nil {
			// Remove marks that the model has written: they must not become citations.
			text.WriteString(markdown.Clean(piece.Text))
			continue
		}

		// A mark replaces the citation while the text is parsed, because a citation is no Markdown.
		text.WriteString(markdown.Mark(len(site.Cites)))
		c := citePiece(piece.Cite)
		site.Cites = append(site.Cites, markdown.Cite{Label: c.Label, URL: c.URL, Note: c.Note})
	}
	return render(ctx, []byte(text.String()), site)
}

func (d dating) markdownSite(prefix string, level int) markdown.Site {
	return markdown.Site{Prefix: prefix, Level: level, Text: layout.AppendText, Code: appendFenced, Now: d.now}
}

// render returns a document, or nil and a sentence that says why there is none.
func render(ctx context.Context, text []byte, site markdown.Site) (*document, string) {
	doc, err := markdown.Render(ctx, text, site)
	if err != nil {
		return nil, fmt.Sprintf("This document is %v, so its source is shown.", err)
	}
	return &document{HTML: template.HTML(doc.HTML), Contents: doc.Headings}, ""
}

// appendFenced appends a code block of a document, coloured if its language is known.
func appendFenced(dst []byte, name string, code []byte) []byte {
	language, known := query.Language(name)
	// Use one painter for all lines, because a comment may span several.
	paint := newPainter(language, 0)
	for len(code) > 0 {
		var line []byte
		line, code, _ = nextLine(code)
		var colours []lex.Span
		if known { // for an unknown language the lexer would guess
			colours = paint.colours(line)
		}
		dst = append(appendCode(dst, line, colours, nil), '\n')
	}
	return dst
}

// sourcePage returns the address of the page that shows a file with its lines. For a document that is
// the page of its source.
func sourcePage(page, file string) string {
	if !isDrawn(file) {
		return page
	}

	// The query must come before the fragment.
	before, fragment, hasFragment := strings.Cut(page, "#")
	if hasFragment {
		fragment = "#" + fragment
	}
	return before + plainQuery + fragment
}

// lineOf returns the address of a line of a file. page is the address of the file's page.
func lineOf(page, file string, line int) string {
	return fmt.Sprintf("%s#L%d", sourcePage(page, file), line)
}

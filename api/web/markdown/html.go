package markdown

import (
	"bytes"
	"regexp"

	"github.com/yuin/goldmark/ast"
	gfm "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// pieces writes HTML in a Markdown document to the output: as text if literal, else only its
// complete tags. Each piece is parsed on its own, so that an unclosed one does not swallow the
// rest.
type pieces struct{ literal bool }

// RegisterFuncs implements renderer.NodeRenderer.
func (p pieces) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, p.block)
	r.Register(ast.KindRawHTML, p.inline)
}

// block writes a block of HTML in the document.
func (p pieces) block(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.HTMLBlock)
	source := n.Lines().Value(src)
	if n.HasClosure() {
		source = append(bytes.Clone(source), n.ClosureLine.Value(src)...)
	}

	if !p.literal {
		writeTags(w, source, false)
		return ast.WalkSkipChildren, nil
	}
	_, _ = w.WriteString("<pre>")
	_, _ = w.Write(util.EscapeHTML(source))
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkSkipChildren, nil
}

// inline writes HTML within a line.
func (p pieces) inline(w util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	source := node.(*ast.RawHTML).Segments.Value(src)
	if p.literal {
		_, _ = w.Write(util.EscapeHTML(source))
	} else {
		writeTags(w, source, true)
	}
	return ast.WalkSkipChildren, nil
}

// mute lists elements whose text is not for readers.
var mute = map[string]bool{"script": true, "style": true, "title": true, "textarea": true, "iframe": true, "noembed": true, "noframes": true, "noscript": true, "xmp": true, "plaintext": true}

// writeTags writes the text and the complete tags of a piece of HTML; if inline, only inline tags.
// Comments and mute elements are left out.
func writeTags(w util.BufWriter, source []byte, inline bool) {
	z := html.NewTokenizer(bytes.NewReader(source))
	silent := false
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return // the end: what is left of a tag that does not end is nothing
		}
		raw := bytes.Clone(z.Raw())
		switch kind {
		case html.TextToken:
			// The tokenizer returns the content of a mute element as one text. Skip only that.
			if !silent {
				_, _ = w.Write(util.EscapeHTML([]byte(html.UnescapeString(string(raw)))))
			}
			silent = false
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, _ := z.TagName()
			silent = kind != html.EndTagToken && mute[string(name)]
			if !mute[string(name)] && (!inline || tagKinds[string(name)].inline) {
				_, _ = w.Write(raw)
			}
		}
	}
}

// kinds marks task lists, which have boxes instead of bullets, and quotes that begin with a kind of
// note, such as [!NOTE].
type kinds struct{}

// Transform implements parser.ASTTransformer.
func (kinds) Transform(doc *ast.Document, r text.Reader, pc parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		watchOf(pc).tick()
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *gfm.TaskCheckBox:
			item := n.Parent().Parent()
			if item != nil && item.PreviousSibling() == nil && item.Kind() == ast.KindListItem {
				item.Parent().SetAttributeString("class", []byte("tasks"))
			}
		case *ast.Blockquote:
			note(n, r.Source())
		}
		return ast.WalkContinue, nil
	})
}

var noteKind = regexp.MustCompile(`^\[!(?i:(note|tip|important|warning|caution))\]\s*$`)

// note converts a quote whose first line is [!NOTE] or another kind to a note with that title.
func note(quote *ast.Blockquote, source []byte) {
	first, ok := quote.FirstChild().(*ast.Paragraph)
	if !ok {
		return
	}
	line := first.Lines().At(0)
	kind := noteKind.FindSubmatch(line.Value(source))
	if kind == nil {
		return
	}

	// Remove the line, unless it is a link with that name.
	for c := first.FirstChild(); c != nil; c = first.FirstChild() {
		words, ok := c.(*ast.Text)
		if !ok || words.Segment.Start >= line.Stop {
			break
		}
		first.RemoveChild(first, c)
	}
	if first.ChildCount() == 0 {
		quote.RemoveChild(quote, first)
	}
	name := bytes.ToLower(kind[1])
	title, strong := ast.NewParagraph(), ast.NewEmphasis(2)
	strong.AppendChild(strong, ast.NewString(append(bytes.ToUpper(name[:1:1]), name[1:]...)))
	title.AppendChild(title, strong)
	quote.InsertBefore(quote, quote.FirstChild(), title)
	quote.SetAttributeString("class", name)
}

// output collects the HTML of a document, up to a size limit: a few kilobytes may repeat a long
// address thousands of times.
type output struct {
	bytes.Buffer
	watch *watch
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > mostHTML {
		panic(stopped{ErrGrown})
	}
	o.watch.look()
	return o.Buffer.Write(p)
}

// Package markdown draws a document of Markdown as HTML for a page of this site.
// What it is given is hostile: whatever stands in it, what comes out has no
// elements, attributes and addresses but those of a short list.
//
//	source -> refused where it is nested too deep (depth.go)
//	       -> HTML by goldmark, with tables, ~~text~~, tasks, notes and bare addresses;
//	          of the HTML within it the whole tags (html.go)
//	       -> its tags one by one: known, ended, links resolved (draw.go, link.go)
//	       -> what the list allows of it (bluemonday, policy.go)
//
// HTML within a document goes the same way as what is made of Markdown. Of tags
// that are not known the text stays, and of scripts and styles nothing.
package markdown

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	writer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// The bounds of a document that is drawn.
const (
	mostBytes = 512 << 10
	mostTime  = 50 * time.Millisecond
	mostGap   = 5 * time.Millisecond // of the time between two looks at the clock, that counts
	mostDepth = 100                  // elements within each other
	mostHTML  = 8 << 20              // bytes of HTML on the way
)

// What a document is not drawn for: what it is, for a sentence about it.
var (
	ErrLarge = errors.New("larger than 512 KB")
	ErrSlow  = errors.New("more than can be drawn in 50 ms")
	ErrDeep  = errors.New("nested deeper than 100 levels")
	ErrGrown = errors.New("longer than 8 MB once it is drawn")
	ErrForm  = errors.New("of a form that cannot be drawn")
)

// Site is what a page knows of a document besides its text. Its functions are
// called by one goroutine at a time, which may outlive the call of Render.
type Site struct {
	Dir string // path of the directory of the document; "" for the root

	// The addresses in this site of a file, of a directory and of the bytes of a
	// file, by path. Where they are nil a relative link leads nowhere.
	File, Tree, Raw func(path string) string

	// Text appends text as HTML, hidden characters shown.
	Text func(dst, text []byte) []byte

	// Code appends the text of a block of code in a language, by the name that the
	// document gives it ("" for none), as HTML: text, and i elements of one of the
	// classes c, s, n, k, t and d.
	Code func(dst []byte, language string, code []byte) []byte

	Prefix  string // of ids, one of the page: md, or t and a number
	Level   int    // of the heading above; the document's own are below it
	Literal bool   // HTML is text, as it is written
	Cites   []Cite // what Mark stands for

	Now func() time.Time
}

// Cite is a link of this site's own that stands in a text.
type Cite struct {
	Label string
	URL   string // "" for none
	Note  string // "" for none
}

// Document is a document as HTML.
type Document struct {
	HTML     []byte
	Headings []Heading
}

// Heading is a heading of a document.
type Heading struct {
	Level int // as the document has it, from 1
	ID    string
	Text  string
}

// Mark is what stands in a source for a Cite: its number between two bytes that
// Clean takes out of everything else.
func Mark(n int) string { return "\x01" + strconv.Itoa(n) + "\x02" }

const (
	markBegin = 1
	markEnd   = 2
)

// Clean takes what could be read as a Mark out of a text.
func Clean(s string) string {
	return strings.NewReplacer("\x01", "\uFFFD", "\x02", "\uFFFD").Replace(s)
}

// Render draws a document. It fails with one of the errors above, and with that of
// ctx as soon as it ends: what is under way then ends by itself. It takes time by
// the length of the source, 50 ms at most on a machine that does nothing else. It is
// safe for concurrent use.
func Render(ctx context.Context, src []byte, s Site) (*Document, error) {
	switch {
	case len(src) > mostBytes:
		return nil, ErrLarge
	case nested(src):
		return nil, ErrDeep
	}

	type result struct {
		doc *Document
		err error
	}
	done := make(chan result, 1)
	go func() {
		doc, err := render(ctx, src, s)
		done <- result{doc, err}
	}()
	select {
	case r := <-done:
		return r.doc, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// render is Render of what is not refused by a look.
func render(ctx context.Context, src []byte, s Site) (doc *Document, err error) {
	// The parser has no way to end early but this one. What else it throws is of the document
	// too, which must not end the process.
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			doc, err = nil, r.why
		default:
			doc, err = nil, fmt.Errorf("%w (%v)", ErrForm, r)
		}
	}()

	watch := &watch{ctx: ctx, now: s.Now, last: s.Now()}
	pc := parser.NewContext()
	pc.Set(watchKey, watch)
	md := documents
	if s.Literal {
		md = answers
	}
	made := &output{watch: watch}
	if err := md.Convert(src, made, parser.WithContext(pc)); err != nil {
		return nil, err
	}

	d := &drawing{Site: s, watch: watch, ids: map[string]int{}, out: make([]byte, 0, 2*len(src))}
	d.draw(made.Bytes())
	watch.look()
	return &Document{HTML: allowed.SanitizeBytes(d.out), Headings: d.headings}, nil
}

// Readers of documents, and of answers, whose HTML is text. They are safe for
// concurrent use.
var documents, answers = newMarkdown(false), newMarkdown(true)

func newMarkdown(literal bool) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(lines{}, 0)),
			parser.WithInlineParsers(util.Prioritized(delimiters{}, 0)),
			parser.WithParagraphTransformers(util.Prioritized(paragraphs{}, 0)),
			parser.WithASTTransformers(util.Prioritized(kinds{}, 1000)),
		),
		// Addresses of any kind pass here, and are looked at one by one behind it.
		goldmark.WithRendererOptions(writer.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(pieces{literal}, 0))),
	)
}

// Package markdown renders Markdown documents as HTML for pages of this site. Documents are
// hostile: whatever they contain, the output only has elements, attributes and addresses of a short
// list.
//
//	source -> refused if nested too deeply (depth.go)
//	       -> HTML by goldmark, with tables, ~~text~~, tasks, notes and bare addresses;
//	          of HTML in the document, the complete tags (html.go)
//	       -> tag by tag: known ones, closed, links resolved (draw.go, link.go)
//	       -> filtered by an allow list (bluemonday, policy.go)
//
// HTML in a document goes the same way as HTML made of Markdown. Of unknown tags the text remains;
// scripts and styles are removed.
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

// The limits of a rendered document.
const (
	mostBytes = 512 << 10
	mostTime  = 50 * time.Millisecond
	mostGap   = 5 * time.Millisecond // of the time between two looks at the clock, that counts
	mostDepth = 100                  // elements within each other
	mostHTML  = 8 << 20              // bytes of HTML on the way
)

// The reasons why a document is not rendered, each as part of a sentence.
var (
	ErrLarge = errors.New("larger than 512 KB")
	ErrSlow  = errors.New("more than can be drawn in 50 ms")
	ErrDeep  = errors.New("nested deeper than 100 levels")
	ErrGrown = errors.New("longer than 8 MB once it is drawn")
	ErrForm  = errors.New("of a form that cannot be drawn")
)

// Site is what a page knows about a document. Its functions are called by one goroutine at a time,
// which may outlive the call of Render.
type Site struct {
	Dir string // path of the directory of the document; "" for the root

	// Addresses in this site of a file, a directory, and the raw bytes of a file, by path. If they
	// are nil, relative links lead nowhere.
	File, Tree, Raw func(path string) string

	// Text appends text as HTML, with hidden characters shown.
	Text func(dst, text []byte) []byte

	// Code appends a block of code as HTML: text, and i elements with one of the classes c, s, n,
	// k, t and d. language is the document's name for it; "" for none.
	Code func(dst []byte, language string, code []byte) []byte

	Prefix  string // of ids, one of the page: md, or t and a number
	Level   int    // of the heading above; the document's own are below it
	Literal bool   // HTML is text, as it is written
	Cites   []Cite // what Mark stands for

	Now func() time.Time
}

// Cite is a link made by this site, such as a citation.
type Cite struct {
	Label string
	URL   string // "" for none
	Note  string // "" for none
}

// Document is a rendered document.
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

// Mark returns the placeholder of a Cite in a source: its number between two bytes that Clean
// removes from everything else.
func Mark(n int) string { return "\x01" + strconv.Itoa(n) + "\x02" }

const (
	markBegin = 1
	markEnd   = 2
)

// Clean removes the bytes of placeholders from a text.
func Clean(s string) string {
	return strings.NewReplacer("\x01", "\uFFFD", "\x02", "\uFFFD").Replace(s)
}

// Render renders a document. It returns one of the errors above, or that of ctx as soon as ctx
// ends; the work then ends by itself. Its time is linear in the length of the source, at most 50 ms
// on an idle machine. It is safe for concurrent use.
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

// render renders a document that passed the first checks.
func render(ctx context.Context, src []byte, s Site) (doc *Document, err error) {
	// The parser can only be stopped by a panic. Its own panics become errors too, so that they do
	// not end the process.
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

// The Markdown converters for documents, and for answers, in which HTML is text. They are safe for
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
		// The renderer accepts all addresses; drawing checks each of them afterwards.
		goldmark.WithRendererOptions(writer.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(pieces{literal}, 0))),
	)
}

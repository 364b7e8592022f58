package markdown

import (
	"time"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser takes time by the square of some numbers. Where it cannot be stopped
// meanwhile, as within one paragraph, these bound the numbers.
const (
	mostDelimiters  = 3000 // * _ ~ of one paragraph, heading or cell
	mostDefinitions = 3000 // lines of one paragraph that begins with [
)

// stopped is thrown through the parser, and caught by Render.
type stopped struct{ why error }

// watch ends a drawing that takes too long.
type watch struct {
	now   func() time.Time
	last  time.Time // when it looked at the clock
	spent time.Duration
	ticks int

	block      ast.Node // whose delimiters are counted
	delimiters int
}

var watchKey = parser.NewContextKey()

// tick looks at the clock now and then.
func (w *watch) tick() {
	if w.ticks++; w.ticks%32 == 0 {
		w.look()
	}
}

func (w *watch) look() {
	// Of a long time between two looks most was of others: on a busy machine a small document
	// would be too slow. What the parser does in between is bounded by numbers.
	now := w.now()
	w.spent += min(now.Sub(w.last), mostGap)
	w.last = now
	if w.spent > mostTime {
		panic(stopped{ErrSlow})
	}
}

func watchOf(pc parser.Context) *watch { return pc.Get(watchKey).(*watch) }

// lines is asked about each line in each block, and opens none.
type lines struct{}

func (lines) Trigger() []byte { return nil }

func (lines) Open(parent ast.Node, _ text.Reader, pc parser.Context) (ast.Node, parser.State) {
	// Counted anew for each: the parser builds the tree while it is asked here.
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > mostDepth {
			panic(stopped{ErrDeep})
		}
	}
	watchOf(pc).tick()
	return nil, parser.NoChildren
}

func (lines) Continue(ast.Node, text.Reader, parser.Context) parser.State { return parser.Close }
func (lines) Close(ast.Node, text.Reader, parser.Context)                 {}
func (lines) CanInterruptParagraph() bool                                 { return true }
func (lines) CanAcceptIndentedLine() bool                                 { return true }

// delimiters is asked about each character that may mean something, and takes none.
type delimiters struct{}

func (delimiters) Trigger() []byte { return []byte("*_~[]!<`&:") }

func (delimiters) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	w := watchOf(pc)
	w.tick()
	switch block.Peek() {
	// Only these are paired, which takes time by the square of their number.
	case '*', '_', '~':
		// The parser works on one block at a time.
		if w.block != parent {
			w.block, w.delimiters = parent, 0
		}
		if w.delimiters++; w.delimiters > mostDelimiters {
			panic(stopped{ErrSlow})
		}
	}
	return nil
}

// paragraphs is shown each paragraph, and leaves it as it is.
type paragraphs struct{}

func (paragraphs) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	watchOf(pc).tick()
	// The parser takes each definition off the beginning of the lines that are left.
	if l := n.Lines(); l.Len() > mostDefinitions {
		first := l.At(0)
		// Only a paragraph that begins with [ is searched for definitions.
		if v := first.Value(r.Source()); len(v) > 0 && v[0] == '[' {
			panic(stopped{ErrSlow})
		}
	}
}

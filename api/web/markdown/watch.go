package markdown

import (
	"bytes"
	"context"
	"time"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser's time grows with the square of these numbers. It cannot be stopped within a
// paragraph, so the numbers are limited.
const (
	mostDelimiters  = 3000 // * _ ~ of one paragraph, heading or cell
	mostDefinitions = 3000 // lines of one paragraph that begins with [
)

// stopped is thrown through the parser as a panic. Render catches it.
type stopped struct{ why error }

// watch stops a rendering that takes too long.
type watch struct {
	ctx   context.Context // of who waits for it
	now   func() time.Time
	last  time.Time // when it looked at the clock
	spent time.Duration
	ticks int

	block      ast.Node // that the two below are of
	delimiters int
	backticks  map[int]int // by length of a run of them: where in the source the last begins
}

var watchKey = parser.NewContextKey()

// tick checks the clock at every eighth call.
func (w *watch) tick() {
	if w.ticks++; w.ticks%8 == 0 {
		w.look()
	}
}

// look checks the clock and the context. It panics if the rendering must stop.
func (w *watch) look() {
	// A long gap was mostly spent on other work of a busy machine, so count at most mostGap. The
	// parser's own work between two looks is limited by numbers.
	now := w.now()
	w.spent += min(now.Sub(w.last), mostGap)
	w.last = now
	if w.spent > mostTime {
		panic(stopped{ErrSlow})
	}
	if w.ctx.Err() != nil {
		panic(stopped{context.Cause(w.ctx)})
	}
}

func watchOf(pc parser.Context) *watch { return pc.Get(watchKey).(*watch) }

// lines is called for each line in each block, to check limits. It opens no block.
type lines struct{}

func (lines) Trigger() []byte { return nil }

// Open parses nothing. It stops the parser if blocks are nested too deeply.
func (lines) Open(parent ast.Node, _ text.Reader, pc parser.Context) (ast.Node, parser.State) {
	// Count again for each line, because the parser builds the tree meanwhile.
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

// delimiters is called for each character that may have a meaning. It consumes backticks that begin
// no code: for each of them the parser would search the whole block for an end.
type delimiters struct{}

func (delimiters) Trigger() []byte { return []byte("*_~[]!<`&:") }

// Parse stops the parser if a block has too many delimiters, and skips backticks that nothing
// closes.
func (delimiters) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	w := watchOf(pc)
	w.tick()

	// The parser works on one block at a time.
	if w.block != parent {
		w.block, w.delimiters, w.backticks = parent, 0, nil
	}
	switch block.Peek() {
	case '`':
		line, at := block.PeekLine()
		length := len(line) - len(bytes.TrimLeft(line, "`"))
		if w.lastRun(block.Source(), length) <= at.Start {
			block.Advance(length)
			return ast.NewTextSegment(at.WithStop(at.Start + length))
		}

	// Only these are paired, in time that grows with the square of their number.
	case '*', '_', '~':
		if w.delimiters++; w.delimiters > mostDelimiters {
			panic(stopped{ErrSlow})
		}
	}
	return nil
}

// lastRun returns where the last run of length backticks in the block begins; -1 if there is none.
func (w *watch) lastRun(src []byte, length int) int {
	if w.backticks == nil {
		w.backticks = map[int]int{}
		lines := w.block.Lines()
		for i := range lines.Len() {
			s := lines.At(i)
			for at := s.Start; at < s.Stop; at++ {
				from := at
				for at < s.Stop && src[at] == '`' {
					at++
				}
				if at > from {
					w.backticks[at-from] = from
				}
			}
		}
	}
	if at, ok := w.backticks[length]; ok {
		return at
	}
	return -1
}

// paragraphs is called for each paragraph, to check limits. It changes nothing.
type paragraphs struct{}

// Transform changes nothing. It stops the parser at a paragraph with too many lines that may be
// link definitions.
func (paragraphs) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	watchOf(pc).tick()
	// For each definition the parser copies the remaining lines.
	if l := n.Lines(); l.Len() > mostDefinitions {
		first := l.At(0)
		// Only a paragraph that begins with [ is searched for definitions.
		if v := first.Value(r.Source()); len(v) > 0 && v[0] == '[' {
			panic(stopped{ErrSlow})
		}
	}
}

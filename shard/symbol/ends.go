package symbol

import (
	"bytes"
	"cmp"
	"slices"
)

// ends finds the ends of definitions that ctags does not tell: for most languages ctags knows only
// where definitions begin. The indentation shows the ends. A definition continues while lines are
// deeper than its first line. It ends with a line of the same depth that closes it:
//
//	fn area(          open: deeper lines follow
//	    s: &Shape,
//	) -> f64 {        closes, but opens again: goes on
//
//	    s.w * s.h     blank lines say nothing
//	}                 the end
//
// A definition without this shape, such as a body with text of several lines at the margin, gets no
// end: none is better than a wrong one. The text is read once, line by line, with a stack of the
// open definitions.
type ends struct {
	marks []mark   // definitions that ctags has reported for the file so far
	held  []Symbol // all symbols from the first one without an end on, so that their order stays
	room  []byte   // text of the names and signatures in held

	open   []openDefinition // the deepest comes last
	limits []uint32         // ends of the known definitions around the line, the smallest last
	before uint32           // the last line that tells something
}

// mark is a definition of several lines, whose end is known or to be found.
type mark struct {
	line, end uint32
	held      int // index of the symbol that needs the end; -1 if ctags told it
	depth     int // length of the name of its scope: of two definitions in one line the inner one has more
	text      bool
}

// openDefinition is a definition whose end has not been found yet.
type openDefinition struct {
	mark   int // index of its mark
	line   uint32
	limit  uint32 // last line in which it can end
	in     indentation
	header bool   // its parameters are still open
	braced bool   // it has a brace, so only a line that closes the brace is its end
	value  bool   // a value follows, which may have its own braces
	closed uint32 // last line of the definition, unless the next line continues it; 0 if unknown
	over   bool   // with closed: nothing may continue it
}

// hasBody reports whether definitions of a kind have lines of their own.
func hasBody(kind string) bool {
	switch kind {
	case "function", "method", "getter", "setter", "generator", "singletonMethod", "class", "struct", "union", "enum", "interface",
		"trait", "protocol", "implementation", "object", "module", "namespace":
		return true
	}
	return false
}

// Limits of the buffers that are kept from one file to the next: bytes of names, and symbols.
const (
	mostRoom = 1 << 20
	mostHeld = 1 << 14
)

// reset forgets the file before.
func (e *ends) reset() {
	if cap(e.room) > mostRoom || cap(e.held) > mostHeld {
		*e = ends{}
	}
	clear(e.held)
	e.marks, e.held, e.room = e.marks[:0], e.held[:0], e.room[:0]
	e.open, e.limits, e.before = e.open[:0], e.limits[:0], 0
}

// add receives a symbol. It passes it to use now, or leaves that to finish.
func (e *ends) add(s Symbol, use func(Symbol)) {
	wanted := s.End == 0 && hasBody(s.Kind)

	// A known end limits the definitions around it whose ends are not known.
	if wanted || s.End > s.Line {
		m := mark{line: s.Line, end: s.End, held: -1, depth: len(s.ParentName), text: s.Kind == "heredoc"}
		if wanted {
			m.held = len(e.held)
		}
		e.marks = append(e.marks, m)
	}

	// Symbols keep their order: after a held one all are held.
	if !wanted && len(e.held) == 0 {
		use(s)
		return
	}
	s.Name, s.ParentName, s.Signature = e.keep(s.Name), e.keep(s.ParentName), e.keep(s.Signature)
	e.held = append(e.held, s)
}

// keep copies a name. If room is reallocated, earlier copies stay valid.
func (e *ends) keep(name []byte) []byte {
	from := len(e.room)
	e.room = append(e.room, name...)
	return e.room[from:len(e.room):len(e.room)]
}

// finish finds the ends of the held symbols, and passes the symbols to use.
func (e *ends) finish(text []byte, use func(Symbol)) {
	if len(e.held) == 0 {
		return
	}

	// Only now all definitions of the file are known.
	e.read(text)
	for _, m := range e.marks {
		if m.held >= 0 {
			e.held[m.held].End = m.end
		}
	}
	for _, s := range e.held {
		use(s)
	}
}

// read sets the missing ends of the marks.
func (e *ends) read(text []byte) {
	byLine := func(a, b mark) int { return cmp.Compare(a.line, b.line) }
	if !slices.IsSortedFunc(e.marks, byLine) {
		slices.SortStableFunc(e.marks, byLine)
	}

	next := 0
	quoted := uint32(0) // last line that is text, not code
	for number := uint32(1); len(text) > 0 && (next < len(e.marks) || len(e.open) > 0); number++ {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		first := next
		for next < len(e.marks) && e.marks[next].line <= number {
			if e.marks[next].text {
				quoted = max(quoted, e.marks[next].end)
			}
			next++
		}

		if next == first && e.inside(line) {
			e.before = number
			continue
		}

		l := newSourceLine(number, line)
		if len(l.text) > 0 && (next > first || number > quoted && !l.silent()) {
			e.close(&l)
			e.before = number
		}
		e.begin(&l, first, next)
	}

	for len(e.open) > 0 {
		e.pop(e.endBefore(&e.open[len(e.open)-1]))
	}
}

var newline = []byte{'\n'}

// inside reports whether no open definition can end in line. It is for lines in which none begins,
// and is true for most: nothing is open, or the deepest definition has a brace and the line is
// deeper.
func (e *ends) inside(line []byte) bool {
	if len(e.open) == 0 {
		return true
	}

	d := &e.open[len(e.open)-1]
	n := d.in.bytes
	if !d.braced || d.closed > 0 || len(line) < n+2 {
		return false
	}

	// The line and the definition must be indented by the same character.
	c := line[n]
	if !(c == ' ' && d.in.columns == n || c == '\t' && d.in.columns == 8*n) {
		return false
	}
	for i := range n {
		if line[i] != c {
			return false
		}
	}
	return true
}

// begin opens the definition that begins in line l, so that its end is looked for. Its marks are
// those from first to next.
func (e *ends) begin(l *sourceLine, first, next int) {
	for len(e.limits) > 0 && e.limits[len(e.limits)-1] < l.number {
		e.limits = e.limits[:len(e.limits)-1]
	}

	// Of several definitions on a line, the outer one owns the following lines.
	outer, alone := -1, true

	for i := first; i < next; i++ {
		m := &e.marks[i]
		switch {
		case m.text:
		case m.held < 0:
			e.limit(m)
		case outer < 0 || m.depth < e.marks[outer].depth:
			outer, alone = i, true
		case m.depth == e.marks[outer].depth:
			alone = false
		}
	}

	if outer < 0 || !alone || len(l.text) == 0 {
		return
	}

	s := l.shape()
	if s.braces > 1 || s.isWhole() {
		return
	}
	d := openDefinition{mark: outer, line: l.number, in: l.in, header: s.header, braced: s.braces > 0 || s.last == '{', value: s.last == '='}
	if len(e.limits) > 0 {
		d.limit = e.limits[len(e.limits)-1]
	}
	e.open = append(e.open, d)
}

// limit records an end that ctags knows. Ctags reports some definitions that reach beyond the one
// around them: each counts up to its own end.
func (e *ends) limit(m *mark) {
	i := len(e.limits)
	for i > 0 && e.limits[i-1] < m.end {
		i--
	}
	e.limits = slices.Insert(e.limits, i, m.end)
}

// close ends the definitions that a line does not continue.
func (e *ends) close(l *sourceLine) {
	for len(e.open) > 0 {
		d := &e.open[len(e.open)-1]
		deeper, same := l.in.compare(d.in)

		var end uint32
		switch {
		case deeper && d.closed > 0 && d.over:
			// The line that closed it was probably text.
		case deeper:
			d.closed = 0
			d.braced = d.braced || !d.value && l.text[len(l.text)-1] == '{'
			return

		case same:
			var stays bool
			if end, stays = e.closeAt(d, l); stays {
				return
			}
		case l.in.shallower(d.in):
			end = e.endBefore(d)
		}
		e.pop(end)
	}
}

// pop removes the deepest definition from the stack. Its end is 0 if it is not clear.
func (e *ends) pop(end uint32) {
	d := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	if end > d.line && (d.limit == 0 || end <= d.limit) {
		e.marks[d.mark].end = end
	}
}

// endBefore returns the end of a definition that has ended before a line which does not close it.
func (e *ends) endBefore(d *openDefinition) uint32 {
	if d.closed > 0 {
		return d.closed
	}
	if d.braced {
		return 0
	}
	return e.before
}

// closeAt decides what a line as deep as a definition means for it: its end, or that it stays open,
// perhaps until the next line confirms its end.
func (e *ends) closeAt(d *openDefinition, l *sourceLine) (end uint32, stays bool) {
	s := l.shape()

	// The body may begin in a separate line, in Rust after a condition.
	if !d.braced && (l.text[0] == '{' || l.word("where")) {
		d.braced, d.closed, d.over = s.braces > 0, 0, false
		if s.isWhole() {
			d.closed, d.over = l.number, true
		}
		return 0, true
	}

	closes := bytes.IndexByte([]byte("})]>"), l.text[0]) >= 0
	switch {
	case d.closed > 0 || !closes && !l.closingWord():
		return e.endBefore(d), false

	// A closing word, such as end, closes the definition unless a later line continues it.
	case !closes:
		d.closed, d.over = l.number, true
		return 0, true
	case l.text[0] != '}' && d.braced && !d.header:
		return 0, false // the brace is still open

	// The line opens the next part, such as the body after the parameters.
	case s.opens() && (d.header || l.text[0] != '}'):
		d.header, d.braced = s.header, s.last == '{'
		return 0, true
	case s.opens() && !bytes.HasPrefix(l.text, []byte("},")):
		return 0, false
	case l.text[0] == '}' && !d.header || s.last == ';':
		d.closed, d.over = l.number, true
		return 0, true
	}

	// If nothing follows, the end of the parameters is the end.
	d.closed, d.header, d.braced = l.number, false, false
	return 0, true
}

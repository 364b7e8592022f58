package symbol

import (
	"bytes"
	"cmp"
	"slices"
)

// ends works out the ends that ctags does not tell: of most languages it knows where
// definitions begin only. They are read off the indentation. A definition goes on while
// lines are deeper than its own, and ends with a line as deep as it that closes it:
//
//	fn area(          open: deeper lines follow
//	    s: &Shape,
//	) -> f64 {        closes, but opens again: goes on
//
//	    s.w * s.h     blank lines say nothing
//	}                 the end
//
// What does not have this shape, as a body with text of several lines at the margin, gets no
// end: none is better than a wrong one. The text is read once, line by line, with a
// stack of the definitions that are open.
type ends struct {
	marks []mark   // what ctags has told of the file so far
	held  []Symbol // all from the first one without an end: their order stays
	room  []byte   // the names and signatures of held

	open   []openDefinition // the deepest last
	limits []uint32         // ends of the known definitions around the line, the least last
	before uint32           // the last line that says something
}

// mark is a definition of several lines: one whose end is known or wanted.
type mark struct {
	line, end uint32
	held      int // index of the symbol that wants the end; -1 where ctags tells it
	depth     int // bytes of the name of its scope: of two in one line the inner one has more
	text      bool
}

// openDefinition is a definition whose end has not been read yet.
type openDefinition struct {
	mark   int // index of its mark
	line   uint32
	limit  uint32 // it cannot end later
	in     indentation
	header bool   // its parameters are open still
	braced bool   // it has a brace: only a line that closes it is its end
	value  bool   // a value follows, which may have braces of its own
	closed uint32 // a line that is its end unless the next one goes on; 0 for none
	over   bool   // with closed: nothing may go on
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

// What is kept from one file to the next: bytes of names, and symbols.
const (
	mostRoom = 1 << 20
	mostHeld = 1 << 14
)

// reset forgets the last file.
func (e *ends) reset() {
	if cap(e.room) > mostRoom || cap(e.held) > mostHeld {
		*e = ends{}
	}
	clear(e.held)
	e.marks, e.held, e.room = e.marks[:0], e.held[:0], e.room[:0]
	e.open, e.limits, e.before = e.open[:0], e.limits[:0], 0
}

// add receives a symbol. It is used at once, or by finish.
func (e *ends) add(s Symbol, use func(Symbol)) {
	wanted := s.End == 0 && hasBody(s.Kind)

	// One whose end is known bounds those around it that want theirs.
	if wanted || s.End > s.Line {
		m := mark{line: s.Line, end: s.End, held: -1, depth: len(s.ParentName), text: s.Kind == "heredoc"}
		if wanted {
			m.held = len(e.held)
		}
		e.marks = append(e.marks, m)
	}

	// Symbols keep their order: behind one that is held, all are.
	if !wanted && len(e.held) == 0 {
		use(s)
		return
	}
	s.Name, s.ParentName, s.Signature = e.keep(s.Name), e.keep(s.ParentName), e.keep(s.Signature)
	e.held = append(e.held, s)
}

// keep copies a name. Where room moves, what was in it stays valid where it was.
func (e *ends) keep(name []byte) []byte {
	from := len(e.room)
	e.room = append(e.room, name...)
	return e.room[from:len(e.room):len(e.room)]
}

// finish works out the ends of the symbols that are held, and uses them.
func (e *ends) finish(text []byte, use func(Symbol)) {
	if len(e.held) == 0 {
		return
	}

	// Only now is all known that begins in the file.
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

// read sets the ends of the marks that want one.
func (e *ends) read(text []byte) {
	byLine := func(a, b mark) int { return cmp.Compare(a.line, b.line) }
	if !slices.IsSortedFunc(e.marks, byLine) {
		slices.SortStableFunc(e.marks, byLine)
	}

	next := 0
	quoted := uint32(0) // the last line of text that is no code
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

// inside reports whether nothing can end in a line in which nothing begins, as in most: none
// is open, or the deepest definition has a brace and the line is deeper.
func (e *ends) inside(line []byte) bool {
	if len(e.open) == 0 {
		return true
	}

	d := &e.open[len(e.open)-1]
	n := d.in.bytes
	if !d.braced || d.closed > 0 || len(line) < n+2 {
		return false
	}

	// Both are set in by the same character.
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

// begin opens the definition of a line, which has the marks from first to next.
func (e *ends) begin(l *sourceLine, first, next int) {
	for len(e.limits) > 0 && e.limits[len(e.limits)-1] < l.number {
		e.limits = e.limits[:len(e.limits)-1]
	}

	// Of several definitions the outer one has the lines that follow.
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
	if s.braces > 1 || s.whole() {
		return
	}
	d := openDefinition{mark: outer, line: l.number, in: l.in, header: s.header, braced: s.braces > 0 || s.last == '{', value: s.last == '='}
	if len(e.limits) > 0 {
		d.limit = e.limits[len(e.limits)-1]
	}
	e.open = append(e.open, d)
}

// limit notes the end of a definition that ctags knows. It tells of some that reach out of
// what is around them: each counts to its own end.
func (e *ends) limit(m *mark) {
	i := len(e.limits)
	for i > 0 && e.limits[i-1] < m.end {
		i--
	}
	e.limits = slices.Insert(e.limits, i, m.end)
}

// close ends the definitions that do not go on in a line.
func (e *ends) close(l *sourceLine) {
	for len(e.open) > 0 {
		d := &e.open[len(e.open)-1]
		deeper, same := l.in.compare(d.in)

		var end uint32
		switch {
		case deeper && d.closed > 0 && d.over:
			// What closed it was text, as it seems.
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

// pop takes the deepest definition off the stack; its end is 0 where that is not plain.
func (e *ends) pop(end uint32) {
	d := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	if end > d.line && (d.limit == 0 || end <= d.limit) {
		e.marks[d.mark].end = end
	}
}

// endBefore is the end of a definition that has ended before a line that does not close it.
func (e *ends) endBefore(d *openDefinition) uint32 {
	if d.closed > 0 {
		return d.closed
	}
	if d.braced {
		return 0
	}
	return e.before
}

// closeAt tells what a line as deep as a definition means to it: the end that it has, or that
// it stays open, be it for the next line to confirm its end.
func (e *ends) closeAt(d *openDefinition, l *sourceLine) (end uint32, stays bool) {
	s := l.shape()

	// The body may begin in a line of its own, behind a condition in Rust.
	if !d.braced && (l.text[0] == '{' || l.word("where")) {
		d.braced, d.closed, d.over = s.braces > 0, 0, false
		if s.whole() {
			d.closed, d.over = l.number, true
		}
		return 0, true
	}

	closes := bytes.IndexByte([]byte("})]>"), l.text[0]) >= 0
	switch {
	case d.closed > 0 || !closes && !l.closingWord():
		return e.endBefore(d), false

	// A closing word, as end, closes it until a line shows otherwise.
	case !closes:
		d.closed, d.over = l.number, true
		return 0, true
	case l.text[0] != '}' && d.braced && !d.header:
		return 0, false // the brace is open still

	// The line opens the next part, as the body after the parameters.
	case s.opens() && (d.header || l.text[0] != '}'):
		d.header, d.braced = s.header, s.last == '{'
		return 0, true
	case s.opens() && !bytes.HasPrefix(l.text, []byte("},")):
		return 0, false
	case l.text[0] == '}' && !d.header || s.last == ';':
		d.closed, d.over = l.number, true
		return 0, true
	}

	// The end of the parameters is the end where nothing follows.
	d.closed, d.header, d.braced = l.number, false, false
	return 0, true
}

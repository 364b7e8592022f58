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
// end: no end is better than a wrong one. setDefinitionEnds reads the text once, line by line, with
// a stack of the open definitions.
type ends struct {
	marks     []mark   // definitions that ctags has reported for the file so far
	waiting   []Symbol // symbols for finish: all from the first one without an end on, so that they stay in order
	nameBytes []byte   // copies of the names and signatures in waiting

	open     []openDefinition // the deepest comes last
	limits   []uint32         // ends of the known definitions around the current line, the smallest last
	lastLine uint32           // the last line that counts for the indentation
}

// mark is a definition of several lines, whose end is known or to be found.
type mark struct {
	line, end   uint32
	symbol      int  // index in ends.waiting of the symbol that needs the end; endKnown if ctags told the end
	scopeLength int  // length of the name of its scope: of two definitions in one line the inner one has a longer scope
	isText      bool // it is no definition but a text of several lines
	rank        int  // of two definitions in one line with equally long scopes the higher one gets the end
}

// endKnown is the symbol of a mark whose end ctags told.
const endKnown = -1

// openDefinition is a definition whose end has not been found yet.
type openDefinition struct {
	mark   int // index of its mark
	line   uint32
	limit  uint32 // last line in which it can end; 0 if there is no limit
	in     indentation
	header bool   // its parameters are still open
	braced bool   // it has a brace, so only a line that closes the brace is its end
	value  bool   // a value follows, which may have its own braces
	closed uint32 // last line of the definition, unless the next line continues it; 0 if unknown
	final  bool   // no line may continue it after closed
}

// The ranks of marks: a value with a name has the lines of a lambda in it, and a parameter that is a
// property has not those of its constructor.
const (
	rankLambda = iota
	rankValue
	rankBody
)

// rankOf returns the rank of a definition; ok is false if definitions of its kind have one line. Values
// of functions are theirs: a use in one is a use in the function.
func rankOf(s *Symbol) (rank int, ok bool) {
	switch {
	case string(s.Name) == "<lambda>":
		return rankLambda, hasBody(s.Kind)
	case hasBody(s.Kind):
		return rankBody, true
	}
	switch s.Kind {
	case "constant", "variable", "property", "field":
		return rankValue, !runs(s.ParentKind)
	}
	return 0, false
}

// runs reports whether definitions of a kind have statements.
func runs(kind string) bool {
	switch kind {
	case "function", "method", "getter", "setter", "generator", "singletonMethod":
		return true
	}
	return false
}

// hasBody reports whether definitions of a kind usually have several lines.
func hasBody(kind string) bool {
	switch kind {
	case "class", "struct", "union", "enum", "interface", "trait", "protocol", "implementation", "object", "module", "namespace":
		return true
	}
	return runs(kind)
}

// The largest buffers that the next file reuses: bytes of names, and symbols.
const (
	maxReusedBytes   = 1 << 20
	maxReusedSymbols = 1 << 14
)

// reset empties e for the next file.
func (e *ends) reset() {
	if cap(e.nameBytes) > maxReusedBytes || cap(e.waiting) > maxReusedSymbols {
		*e = ends{}
	}
	clear(e.waiting)
	e.marks, e.waiting, e.nameBytes = e.marks[:0], e.waiting[:0], e.nameBytes[:0]
	e.open, e.limits, e.lastLine = e.open[:0], e.limits[:0], 0
}

// addSymbol passes a symbol that ctags has found to use. A symbol that needs an end waits for
// finish, and so does every symbol after it, so that they stay in order.
func (e *ends) addSymbol(s Symbol, use func(Symbol)) {
	rank, several := rankOf(&s)
	needsEnd := s.End == 0 && several

	// A known end limits the definitions around it whose ends are not known.
	if needsEnd || s.End > s.Line {
		m := mark{line: s.Line, end: s.End, symbol: endKnown, scopeLength: len(s.ParentName), isText: s.Kind == "heredoc", rank: rank}
		if needsEnd {
			m.symbol = len(e.waiting)
		}
		e.marks = append(e.marks, m)
	}

	if !needsEnd && len(e.waiting) == 0 {
		use(s)
		return
	}
	s.Name, s.ParentName, s.Signature = e.copyName(s.Name), e.copyName(s.ParentName), e.copyName(s.Signature)
	e.waiting = append(e.waiting, s)
}

// copyName copies a name into nameBytes. If that is reallocated, earlier copies stay valid.
func (e *ends) copyName(name []byte) []byte {
	from := len(e.nameBytes)
	e.nameBytes = append(e.nameBytes, name...)
	return e.nameBytes[from:len(e.nameBytes):len(e.nameBytes)]
}

// finish finds the ends of the waiting symbols, and passes these to use. Call it after addSymbol got
// all symbols of the file.
func (e *ends) finish(text []byte, use func(Symbol)) {
	if len(e.waiting) == 0 {
		return
	}

	e.setDefinitionEnds(text)
	for _, m := range e.marks {
		if m.symbol != endKnown {
			e.waiting[m.symbol].End = m.end
		}
	}
	for _, s := range e.waiting {
		use(s)
	}
}

// setDefinitionEnds sets the missing ends of the marks, from the text of the file. Each line first
// closes the definitions that it does not continue, and then opens the one that begins in it.
func (e *ends) setDefinitionEnds(text []byte) {
	byLine := func(a, b mark) int { return cmp.Compare(a.line, b.line) }
	if !slices.IsSortedFunc(e.marks, byLine) {
		slices.SortStableFunc(e.marks, byLine)
	}

	next := 0           // index of the next mark
	quoted := uint32(0) // last line of a text of several lines
	for number := uint32(1); len(text) > 0 && (next < len(e.marks) || len(e.open) > 0); number++ {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		first := next
		for next < len(e.marks) && e.marks[next].line <= number {
			if e.marks[next].isText {
				quoted = max(quoted, e.marks[next].end)
			}
			next++
		}

		if next == first && e.isInside(line) {
			e.lastLine = number
			continue
		}

		l := newSourceLine(number, line)
		if len(l.text) > 0 && (next > first || number > quoted && !l.saysNothing()) {
			e.closeBefore(&l)
			e.lastLine = number
		}
		e.openAt(&l, first, next)
	}

	for len(e.open) > 0 {
		e.popWithEnd(e.endBefore(&e.open[len(e.open)-1]))
	}
}

var newline = []byte{'\n'}

// isInside reports whether a line in which no definition begins cannot end a definition either: none
// is open, or the deepest one has a brace and the line is indented more. It is a fast test that is
// true for most lines.
func (e *ends) isInside(line []byte) bool {
	if len(e.open) == 0 {
		return true
	}

	d := &e.open[len(e.open)-1]
	n := d.in.bytes
	if !d.braced || d.closed > 0 || len(line) < n+2 {
		return false
	}

	// The line and the definition must be indented only by the same character.
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

// openAt opens the definition that begins in line l, so that the next lines can end it. Of several
// definitions it opens the outermost; none if two are equally far out, or if the definition ends in
// the line. It adds the known ends of the line to e.limits. The marks of the line are
// e.marks[first:next].
func (e *ends) openAt(l *sourceLine, first, next int) {
	for len(e.limits) > 0 && e.limits[len(e.limits)-1] < l.number {
		e.limits = e.limits[:len(e.limits)-1]
	}

	outer, alone := -1, true // index of the outermost mark; whether no other mark has a scope as short
	for i := first; i < next; i++ {
		m := &e.marks[i]
		switch {
		case m.isText:
		case m.symbol == endKnown:
			e.addLimit(m)
		case outer < 0 || m.isOutside(&e.marks[outer]):
			outer, alone = i, true
		case !e.marks[outer].isOutside(m):
			alone = false
		}
	}

	if outer < 0 || !alone || len(l.text) == 0 {
		return
	}

	s := l.shape()
	if s.braces > 1 || s.isWhole() || e.marks[outer].rank == rankValue && !s.goesOn() {
		return
	}
	d := openDefinition{mark: outer, line: l.number, in: l.in, header: s.header, braced: s.braces > 0 || s.last == '{', value: s.last == '=' || s.arrow}
	if len(e.limits) > 0 {
		d.limit = e.limits[len(e.limits)-1]
	}
	e.open = append(e.open, d)
}

// isOutside reports whether m, of two definitions in one line, is around the other or comes before it.
func (m *mark) isOutside(other *mark) bool {
	if m.scopeLength != other.scopeLength {
		return m.scopeLength < other.scopeLength
	}
	return m.rank > other.rank
}

// addLimit inserts the end of m, which ctags told, into e.limits. The end need not be the smallest,
// because ctags reports some definitions that reach beyond the definition around them.
func (e *ends) addLimit(m *mark) {
	i := len(e.limits)
	for i > 0 && e.limits[i-1] < m.end {
		i--
	}
	e.limits = slices.Insert(e.limits, i, m.end)
}

// closeBefore removes the definitions that a line does not continue from the stack, and sets their
// ends.
func (e *ends) closeBefore(l *sourceLine) {
	for len(e.open) > 0 {
		d := &e.open[len(e.open)-1]
		deeper, same := l.in.compare(d.in)

		var end uint32
		switch {
		case deeper && d.closed > 0 && d.final:
			// The line that closed it was probably text, so its end is unknown.
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
		e.popWithEnd(end)
	}
}

// popWithEnd removes the deepest definition from the stack and sets its end; 0 means unknown.
func (e *ends) popWithEnd(end uint32) {
	d := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	if end > d.line && (d.limit == 0 || end <= d.limit) {
		e.marks[d.mark].end = end
	}
}

// endBefore returns the end of a definition if the current line neither belongs to it nor closes it;
// 0 if it is unknown.
func (e *ends) endBefore(d *openDefinition) uint32 {
	if d.closed > 0 {
		return d.closed
	}
	if d.braced {
		return 0
	}
	return e.lastLine
}

// closeAt decides what a line that is as deep as a definition does to it. It returns the end of the
// definition (0 if unknown), or that the definition stays open. Then it sets d.closed if the line is
// the end unless the next line continues the definition.
func (e *ends) closeAt(d *openDefinition, l *sourceLine) (end uint32, stays bool) {
	s := l.shape()

	// The body may begin in a separate line, in Rust after a condition.
	if !d.braced && (l.text[0] == '{' || l.beginsWith("where")) {
		d.braced, d.closed, d.final = s.braces > 0, 0, false
		if s.isWhole() {
			d.closed, d.final = l.number, true
		}
		return 0, true
	}

	closes := bytes.IndexByte([]byte("})]>"), l.text[0]) >= 0
	switch {
	case d.closed > 0 || !closes && !l.beginsWithClosingWord():
		return e.endBefore(d), false

	// A closing word, such as end, closes the definition unless a later line continues it.
	case !closes:
		d.closed, d.final = l.number, true
		return 0, true
	case l.text[0] != '}' && d.braced && !d.header:
		return 0, false // the brace is still open, so the end is unknown

	// The line opens the next part, such as the body after the parameters.
	case s.opens() && (d.header || l.text[0] != '}'):
		d.header, d.braced = s.header, s.last == '{'
		return 0, true
	case s.opens() && !bytes.HasPrefix(l.text, []byte("},")):
		return 0, false
	case l.text[0] == '}' && !d.header || s.last == ';':
		d.closed, d.final = l.number, true
		return 0, true
	}

	// The line ends the parameters. If nothing follows, it is the end.
	d.closed, d.header, d.braced = l.number, false, false
	return 0, true
}

package match

import (
	"regexp/syntax"
)

// Limits of a program.
const (
	maxRegisters = 48
	maxSets      = 12
	longestShift = 63
)

// A program finds the ends of matches for 64 bytes at a time, one bit for each. It is a bit-parallel
// automaton for expressions without a rare string, such as `[A-Z][a-z]+[A-Z]`.
//
// A register is a stream of bits. In a marker, bit i says that the elements so far have matched up
// to byte i. With M a marker and C the bytes of a class:
//
//	class    M' = (M & C) << 1
//	C*       M' = (((M & C) + C) ^ C) | M      a carry runs along each run of C
//	A|B      M' = A(M) | B(M)
//
// An example, with bit 0 at the left: `[a-z]*[0-9]` on "ab1 c2"
//
//	text             a b 1 . c 2
//	letters C        1 1 0 0 1 0
//	start M          1 1 1 1 1 1 1     a match may start anywhere
//	C*               1 1 1 1 1 1 1
//	digits D         0 0 1 0 0 1
//	[0-9]            0 0 0 1 0 0 1     matches end before byte 3 and before byte 6
//
// Carries move bits on from word to word, and from window to window. A program cannot express all of
// an expression. A group in a loop becomes a loop over all its bytes. A rune beyond ASCII becomes
// any number of its bytes. Nothing checks assertions at the very end. So a program may report too
// many ends, but never too few.
type program struct {
	ops   []op
	sets  []byteSet
	regs  int   // number of registers
	slots int   // number of carries: each op that moves bits has a slot for its carry
	line  []int // slots whose carry says that a line begins
	word  []int // slots whose carry says that the byte before belongs to a word
	out   int   // register of the ends of matches
	stops []stop
	moved []bool // by slot: its carry is a marker, not a byte of a class
}

// stop is a position in the ops, from which on all results depend on the markers of one register.
// If a window has none of these markers, fill skips the ops after the stop.
type stop struct {
	op     int // index of the op after the stop
	slot   int // the first slot of the ops after it
	marker int // the register
}

// op computes register d from registers a and b.
type op struct {
	code    opcode
	d, a, b int
	shift   uint
	slot    int // slot of its carry
}

type opcode uint8

const (
	opOnes  opcode = iota
	opSet          // d = bytes of sets[a]
	opShift        // d = a << shift
	opAnd
	opOr
	opXor
	opStep // d = (a & b) << 1
	opStar // d = markers a, moved along b by any distance
)

// builder turns an expression into a program.
type builder struct {
	program
	known    map[byteSet]int // register by set
	bytes    []bool          // by register: it depends on single bytes only, not on markers
	tooLarge bool
	begin    int // register of the line starts; -1 if there is none yet
	edge     int // register of the word boundaries; -1 if there is none yet
}

// programOf returns the program of re. It returns nil if the program would be too large, or would
// report every byte as an end.
func programOf(re *syntax.Regexp) *program {
	b := &builder{known: make(map[byteSet]int), begin: -1, edge: -1}
	b.out = b.addWithStops(re, b.emit(op{code: opOnes}))
	if b.tooLarge || b.out == 0 {
		return nil
	}
	return &b.program
}

// estimatePrice estimates the nanoseconds that the program takes for a byte of text.
func (p *program) estimatePrice() float64 {
	return 0.05*float64(len(p.sets)) + 0.02*float64(len(p.ops))
}

// emit appends an op with a new register for its result, and returns that register.
func (b *builder) emit(o op) int {
	// programOf will drop a program that is too large. Until then, any register will do.
	if b.regs >= maxRegisters {
		b.tooLarge = true
		return 0
	}

	o.d = b.regs
	b.regs++

	plain := o.code == opSet || o.code != opOnes && b.bytes[o.a] && (o.code == opShift || b.bytes[o.b])
	b.bytes = append(b.bytes, plain)

	if o.code == opShift || o.code == opStep || o.code == opStar {
		o.slot = b.slots
		b.slots++
		b.moved = append(b.moved, !plain)
	}

	b.ops = append(b.ops, o)
	return o.d
}

// setRegister returns the register with the bytes of a set.
func (b *builder) setRegister(s byteSet) int {
	// Finding a class is the most expensive op, so equal classes share a register.
	if r, ok := b.known[s]; ok {
		return r
	}
	if len(b.sets) >= maxSets {
		b.tooLarge = true
		return 0
	}

	b.sets = append(b.sets, s)
	r := b.emit(op{code: opSet, a: len(b.sets) - 1})
	b.known[s] = r
	return r
}

// addWithStops appends the ops for the whole expression, with a stop after each part of its
// concatenation. m is the register with the markers before re. addWithStops returns the register
// with the markers after re.
func (b *builder) addWithStops(re *syntax.Regexp, m int) int {
	if re.Op == syntax.OpCapture {
		return b.addWithStops(re.Sub[0], m)
	}
	if re.Op != syntax.OpConcat {
		return b.add(re, m)
	}
	for i := 0; i < len(re.Sub); {
		n := countEqual(re.Sub[i:])
		m = b.addCopies(re.Sub[i], n, m)
		b.stops = append(b.stops, stop{op: len(b.ops), slot: b.slots, marker: m})
		i += n
	}
	return m
}

// add appends the ops for re; m and the result are as in addWithStops. For an assertion that a
// program cannot check, it returns m.
func (b *builder) add(re *syntax.Regexp, m int) int {
	if b.tooLarge {
		return 0
	}

	switch re.Op {
	// Groups, concatenations and alternations pass markers into their parts.
	case syntax.OpCapture:
		return b.add(re.Sub[0], m)
	case syntax.OpConcat:
		for i := 0; i < len(re.Sub); {
			n := countEqual(re.Sub[i:])
			m = b.addCopies(re.Sub[i], n, m)
			i += n
		}
		return m

	case syntax.OpAlternate:
		out := b.add(re.Sub[0], m)
		for _, sub := range re.Sub[1:] {
			out = b.emit(op{code: opOr, a: out, b: b.add(sub, m)})
		}
		return out

	// A literal matches one rune after the other.
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			m = b.moveMarkers(runeSet(r, re.Flags&syntax.FoldCase != 0), 1, m)
		}
		return m

	// For a repetition x* the program accepts any bytes that x may contain, in any order.
	case syntax.OpQuest:
		return b.emit(op{code: opOr, a: m, b: b.add(re.Sub[0], m)})
	case syntax.OpPlus:
		if s, ok := setOf(re.Sub[0]); ok {
			return b.star(s, b.moveMarkers(s, 1, m))
		}
		return b.star(alphabet(re.Sub[0]), b.add(re.Sub[0], m))
	case syntax.OpStar:
		return b.star(alphabet(re.Sub[0]), m)

	// Assertions clear markers and move none.
	case syntax.OpBeginLine:
		return b.emit(op{code: opAnd, a: m, b: b.lineStarts()})
	case syntax.OpEndLine:
		return b.emit(op{code: opAnd, a: m, b: b.setRegister(setOfBytes("\n"))})
	case syntax.OpWordBoundary:
		return b.emit(op{code: opAnd, a: m, b: b.wordBoundaries()})
	}

	if s, ok := setOf(re); ok {
		return b.moveMarkers(s, 1, m)
	}
	return m
}

// countEqual returns how many of the first subs are the same class: 3 for `\d\d\d-`; 1 if the first
// is no class.
func countEqual(subs []*syntax.Regexp) int {
	n := 1
	if _, ok := setOf(subs[0]); ok {
		for n < len(subs) && subs[n].Equal(subs[0]) {
			n++
		}
	}
	return n
}

// addCopies appends the ops for n copies of re, which is a single class if n > 1. m and the result
// are as in addWithStops.
func (b *builder) addCopies(re *syntax.Regexp, n, m int) int {
	if n == 1 {
		return b.add(re, m)
	}
	s, _ := setOf(re)
	return b.moveMarkers(s, n, m)
}

// moveMarkers appends the ops that move the markers of register m over n bytes of set s, and
// returns the register with the moved markers. A rune beyond ASCII may take more bytes: then it
// moves the markers over any number of further bytes.
func (b *builder) moveMarkers(s byteSet, n, m int) int {
	c := b.setRegister(s)
	moreBytes := n > longestShift || s.high != 0
	n = min(n, longestShift)
	if n == 1 {
		m = b.emit(op{code: opStep, a: m, b: c})
	} else {
		// run marks where the n bytes before are all in s. Its length doubles in each step: 1, 2, 4
		// and so on. So `\d{8}` takes three steps, not eight.
		run := b.emit(op{code: opShift, a: c, shift: 1})
		for length := 1; length < n; {
			by := min(length, n-length)
			run = b.emit(op{code: opAnd, a: run, b: b.emit(op{code: opShift, a: run, shift: uint(by)})})
			length += by
		}
		m = b.emit(op{code: opAnd, a: run, b: b.emit(op{code: opShift, a: m, shift: uint(n)})})
	}

	switch {
	case n > 1 && moreBytes:
		return b.star(s, m)
	case moreBytes:
		return b.star(byteSet{high: ^uint64(0)}, m)
	}
	return m
}

// star appends the op that moves the markers of register m over any number of bytes of s, and
// returns the register with the moved markers.
func (b *builder) star(s byteSet, m int) int {
	return b.emit(op{code: opStar, a: m, b: b.setRegister(s)})
}

// lineStarts returns the register of the line starts.
func (b *builder) lineStarts() int {
	if b.begin < 0 {
		b.begin = b.emit(op{code: opShift, a: b.setRegister(setOfBytes("\n")), shift: 1})
		b.line = append(b.line, b.slots-1)
	}
	return b.begin
}

// wordBoundaries returns the register of the word boundaries.
func (b *builder) wordBoundaries() int {
	if b.edge < 0 {
		// Bit i of w says that byte i is part of a word. An edge is where that changes.
		var s byteSet
		for c := range byte(0x80) {
			if syntax.IsWordChar(rune(c)) {
				s.add(c)
			}
		}

		w := b.setRegister(s)
		before := b.emit(op{code: opShift, a: w, shift: 1})
		b.word = append(b.word, b.slots-1)
		b.edge = b.emit(op{code: opXor, a: w, b: before})
	}
	return b.edge
}

// setOfBytes returns the set of the bytes of s.
func setOfBytes(s string) (out byteSet) {
	for i := range len(s) {
		out.add(s[i])
	}
	return out
}

// runeSet returns the first bytes of the encodings of r; with fold in any case.
func runeSet(r rune, fold bool) (out byteSet) {
	for _, e := range elemsOf(string(r), fold) {
		if e.alts == nil {
			out.add(e.b)
			out.add(e.b &^ e.fold)
		}

		for _, a := range e.alts {
			out.add(a[0])
		}
	}
	return out
}

// setOf returns the first bytes of the runes that re matches; ok is false if re does not match
// exactly one rune.
func setOf(re *syntax.Regexp) (out byteSet, ok bool) {
	switch re.Op {
	case syntax.OpCapture:
		return setOf(re.Sub[0])

	// A literal may be one rune, perhaps in several cases.
	case syntax.OpLiteral:
		if len(re.Rune) == 1 {
			return runeSet(re.Rune[0], re.Flags&syntax.FoldCase != 0), true
		}
		return out, false

	// A dot matches any rune. Runes beyond ASCII count as one byte, 0x80.
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		for c := range byte(0x81) {
			if c != '\n' || re.Op == syntax.OpAnyChar {
				out.add(c)
			}
		}
		return out, true

	// Add the ASCII members of the class.
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= min(re.Rune[i+1], 0x80); r++ {
				out.add(byte(r))
			}
			if re.Rune[i+1] >= 0x80 {
				out.add(0x80)
			}
		}
		return out, true
	}
	return out, false
}

// alphabet returns all bytes that a match of re may contain.
func alphabet(re *syntax.Regexp) (out byteSet) {
	if s, ok := setOf(re); ok {
		return s
	}

	// setOf handles a single rune only.
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			out.addAll(runeSet(r, re.Flags&syntax.FoldCase != 0))
		}
	}

	for _, sub := range re.Sub {
		out.addAll(alphabet(sub))
	}
	return out
}

// addAll makes s the union of s and t.
func (s *byteSet) addAll(t byteSet) {
	for i := range s.table.lo {
		s.table.lo[i] |= t.table.lo[i]
		s.table.hi[i] |= t.table.hi[i]
	}
	s.high |= t.high
}

func (p *program) reach() int { return 1 }

// fill implements finder: it sets bit i of c.bits if a match ends before byte i. It executes the ops
// one after the other, each over the whole window of src.
func (p *program) fill(c *cursor, src []byte, blocks int, follows bool) (any uint64) {
	if len(c.regs) != p.regs {
		c.regs = make([][64]uint64, p.regs)
		c.carry = make([]uint64, p.slots)
	}
	if !follows {
		p.startCarries(c)
	}

	// Run from stop to stop, while there are markers.
	next := 0
	for _, at := range p.stops {
		for ; next < at.op; next++ {
			p.runOp(c, &p.ops[next], src, blocks)
		}
		if p.hasNoMarkers(c, at, blocks) {
			p.skipOpsAfter(c, at, src[:blocks<<6])
			return 0
		}
	}

	// Run the ops after the last stop.
	for ; next < len(p.ops); next++ {
		p.runOp(c, &p.ops[next], src, blocks)
	}

	// The final markers are the candidates.
	out := &c.regs[p.out]
	for k, w := range out[:blocks] {
		c.bits[k] = w
		if w != 0 {
			any |= 1 << k
		}
	}
	return any
}

// hasNoMarkers reports whether the ops after a stop have no markers in this window: neither in the
// register of the stop, nor in a carry from the window before.
func (p *program) hasNoMarkers(c *cursor, at stop, blocks int) bool {
	markers := uint64(0)
	for _, w := range c.regs[at.marker][:blocks] {
		markers |= w
	}

	for s := at.slot; s < p.slots && markers == 0; s++ {
		if p.moved[s] {
			markers = c.carry[s]
		}
	}
	return markers == 0
}

// skipOpsAfter sets the result of the ops after a stop without running them, because they have no
// markers: no candidates, and only the carries that depend on the last byte. A carry that depends
// on earlier bytes has no effect without a marker.
func (p *program) skipOpsAfter(c *cursor, at stop, window []byte) {
	clear(c.bits[:len(window)>>6])
	clear(c.carry[at.slot:])

	last := window[len(window)-1]
	p.setCarries(c, at.slot, last == '\n', syntax.IsWordChar(lookAt(last)))
}

// startCarries sets the carries for a window that does not follow the last one.
func (p *program) startCarries(c *cursor) {
	clear(c.carry)
	if c.base == 0 {
		endsLine, inWord := true, false // the start of the text begins a line
		p.setCarries(c, 0, endsLine, inWord)
		return
	}
	last := c.text[c.base-1]
	p.setCarries(c, 0, last == '\n', syntax.IsWordChar(lookAt(last)))
}

// setCarries sets the carries of slots from on that depend on the byte before the window.
func (p *program) setCarries(c *cursor, from int, endsLine, inWord bool) {
	if endsLine {
		setCarryOf(c, p.line, from)
	}
	if inWord {
		setCarryOf(c, p.word, from)
	}
}

// setCarryOf sets the carries of slots, from slot from on.
func setCarryOf(c *cursor, slots []int, from int) {
	for _, s := range slots {
		if s >= from {
			c.carry[s] = 1 << 63
		}
	}
}

// runOp executes one op for all blocks of a window.
func (p *program) runOp(c *cursor, o *op, src []byte, blocks int) {
	d := c.regs[o.d][:blocks]
	if o.code == opSet {
		findSet(&c.regs[o.d], src, blocks, &p.sets[o.a])
		return
	}

	a, b := c.regs[o.a][:blocks], c.regs[o.b][:blocks]
	switch o.code {
	// A bit that is shifted out of a word moves into the next word.
	case opOnes:
		for k := range d {
			d[k] = ^uint64(0)
		}

	case opShift:
		before := c.carry[o.slot]
		up, down := o.shift&63, (64-o.shift)&63
		for k, w := range a {
			d[k] = w<<up | before>>down
			before = w
		}
		c.carry[o.slot] = before

	// Move markers on bytes of the set by one.
	case opStep:
		before := c.carry[o.slot]
		for k, w := range a {
			w &= b[k]
			d[k] = w<<1 | before>>63
			before = w
		}
		c.carry[o.slot] = before

	// Without a carry, each word stands alone.
	case opAnd:
		for k, w := range a {
			d[k] = w & b[k]
		}

	case opOr:
		for k, w := range a {
			d[k] = w | b[k]
		}
	case opXor:
		for k, w := range a {
			d[k] = w ^ b[k]
		}
	case opStar:
		// M&C + C, with the carry of the word before: a 1 runs along each run of C and leaves it at
		// its end. ^ C clears the bits that it did not touch.
		carry := c.carry[o.slot]
		for k, w := range a {
			x := w&b[k] + b[k]
			over := uint64(0)
			if x < b[k] {
				over = 1
			}
			y := x + carry
			if y < x {
				over = 1
			}

			carry = over
			d[k] = y ^ b[k] | w
		}
		c.carry[o.slot] = carry
	}
}

package match

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// A machine is an automaton over bytes that is built lazily: a DFA whose states are sets of threads
// of the NFA of package regexp. It runs the NFA rune by rune. A state in the middle of a rune has
// the bytes read so far. If these turn out not to be UTF-8, it reads each of them as U+FFFD, as
// package regexp does:
//
//	state = threads in order of priority, kind of the rune before,
//			bytes of an unfinished rune, a match was found?, match that was just found
//
// Assertions depend on the next rune. So threads wait before an assertion, and the next byte
// decides. For the same reason a match is found by the byte after it. A byte that breaks an
// unfinished rune of k bytes makes k+1 steps at once. The state then has the number of bytes back
// to the end of the match.
//
// An example, `ab?$`: after "a" the threads are b and $. The byte 'b' leads to $ alone. '\n' makes
// $ hold, which is a match with delta 0: it ended before '\n'.
//
// Only one goroutine at a time may use a machine. Its number of transitions and threads is limited;
// beyond the limit it drops all states. Some expressions need a new state at almost every byte,
// which is slow, so it checks stop whenever it computes a new transition.
type machine struct {
	p       *plan
	prog    *syntax.Prog
	reverse bool // reads backward from the end of a match to find its earliest start

	trans  []uint32 // by state<<shift + class of the next byte; see below
	states []state
	index  map[string]uint32    // transition to a state, by the key of the state
	begins [prevNone + 1]uint32 // by kind of the rune before: first state of a search
	pcs    int                  // number of threads in all states, plus 16 for each state
	stop   *atomic.Bool         // checked before a new transition is computed

	marks   sparse   // program counters that were visited
	stack   []uint32 // program counters to follow
	a, b, c []uint32 // buffers of threads
	key     []byte   // key of a state
}

// Flags of a transition. The other bits are the next state, shifted left.
const (
	flagged = 1 << 31         // look at the state: it has a match, is dead, or can skip
	unknown = flagged | 1<<30 // not computed yet
	stateOf = 1<<30 - 1
)

const (
	maxTransitions = 1 << 18 // of a machine: 1 MiB
	maxThreads     = 1 << 18
)

// noMatch is the delta of a state without a match.
const noMatch = -1

// state is a state of a machine.
type state struct {
	threads []uint32 // program counters, in order of priority
	prev    prevKind
	pend    [3]byte // bytes of an unfinished rune, in the order of reading
	npend   uint8
	found   bool // a match was found: no new threads start
	delta   int8 // bytes from the end of the match (in reverse, its start) to the last byte read; or noMatch
	atEnd   int8 // delta at the end of the text, computed lazily; or notYet
}

// notYet is the atEnd of a state for which matchAtEnd has not computed it.
const notYet = -2

// Values of machine.reverse.
const (
	readForward  = false
	readBackward = true
)

// prevKind is what assertions need to know about the rune before.
type prevKind uint8

const (
	prevOther  prevKind = iota
	prevWord            // ASCII letter, digit or underscore
	prevLine            // newline
	prevLetter          // letter beyond ASCII
	prevNone            // the text begins here (in reverse, ends)
)

// prevRune is one rune of each kind.
var prevRune = [...]rune{prevOther: ' ', prevWord: 'a', prevLine: '\n', prevLetter: 'é', prevNone: -1}

// kindOf returns the kind of a rune; -1 stands for no rune. It distinguishes letters beyond ASCII
// only if a match must begin or end a word.
func (m *machine) kindOf(r rune) prevKind {
	switch {
	case r < 0:
		return prevNone
	case r == '\n':
		return prevLine
	case syntax.IsWordChar(r):
		return prevWord
	case m.p.words && IsWord(r):
		return prevLetter
	}
	return prevOther
}

// dead reports whether no further match is possible.
func (s *state) dead(reverse bool) bool {
	return len(s.threads) == 0 && s.npend == 0 && (s.found || reverse)
}

// idle reports whether no thread has started yet.
func (s *state) idle() bool {
	return len(s.threads) == 0 && s.npend == 0 && !s.found
}

// newMachine returns a machine for a program, without states.
func newMachine(p *plan, prog *syntax.Prog, reverse bool) *machine {
	m := &machine{p: p, prog: prog, reverse: reverse}
	m.marks.init(len(prog.Inst))
	m.reset()
	return m
}

// reset drops all states.
func (m *machine) reset() {
	m.trans = m.trans[:0]
	m.states = m.states[:0]
	m.index = make(map[string]uint32)
	for k := range m.begins {
		m.begins[k] = unknown
	}
	m.pcs = 0
}

// full reports whether there may be no room for another state.
func (m *machine) full() bool {
	return len(m.trans)+1<<m.p.shift > maxTransitions || m.pcs > maxThreads
}

// start returns the first state of a search. prev is the kind of the rune before the text that the
// search reads.
func (m *machine) start(prev prevKind) uint32 {
	if s := m.begins[prev]; s != unknown {
		return s
	}

	// Check before adding the state: a reset afterwards would remove it.
	if m.full() {
		m.reset()
	}
	var threads []uint32

	// Forward, resolve starts threads at each byte. In reverse they start only at the end of the
	// match.
	if m.reverse {
		m.marks.clear()
		threads = m.follow(m.a[:0], uint32(m.prog.Start))
		m.a = threads
	}

	m.begins[prev] = m.intern(&state{threads: threads, prev: prev, delta: noMatch}) & stateOf
	return m.begins[prev]
}

// intern returns the transition to s, and adds the state if it is new. It copies s.threads.
func (m *machine) intern(s *state) uint32 {
	// If no thread depends on prev, states that differ only in prev are the same.
	if !m.looksBehind(s) {
		s.prev = prevOther
	}

	k := append(m.key[:0], byte(s.prev), s.npend, s.pend[0], s.pend[1], s.pend[2], byte(s.delta+2), 0)
	if s.found {
		k[6] = 1
	}
	for _, pc := range s.threads {
		k = binary.LittleEndian.AppendUint32(k, pc)
	}
	m.key = k

	if t, ok := m.index[string(k)]; ok {
		return t
	}

	n := uint32(len(m.states))
	c := *s
	c.threads = slices.Clone(s.threads)
	c.atEnd = notYet
	m.states = append(m.states, c)
	m.pcs += len(c.threads) + 16
	for range 1 << m.p.shift {
		m.trans = append(m.trans, unknown)
	}

	// Flag the states after which forward and backward do more than take the next transition.
	t := n << m.p.shift
	if c.delta != noMatch || c.dead(m.reverse) || (m.p.skips && !m.reverse && c.idle()) {
		t |= flagged
	}
	m.index[string(k)] = t
	return t
}

// looksBehind reports whether a thread of s may come to an assertion about the rune before, such as
// ^ or \b, before it reads another rune.
func (m *machine) looksBehind(s *state) bool {
	if s.npend > 0 {
		return false // in the middle of a rune: the step over its first byte has decided the assertions
	}
	if !m.reverse && !s.found && m.p.startAsserts {
		return true
	}
	return m.p.asserts && len(s.threads) > 0
}

// step computes the transition from a state with byte b and stores it. The caller must have called
// makeRoom.
func (m *machine) step(from uint32, b byte) uint32 {
	s := m.states[from>>m.p.shift]
	n := state{found: s.found, delta: noMatch, prev: s.prev}
	threads := s.threads
	rep := m.p.rep[m.p.class[b]]

	switch {
	case s.npend > 0 && !m.reverse: // in the middle of a rune
		r, more := extendRune(&s, rep)
		if more {
			n = s
			n.delta = noMatch
			break
		}

		if r >= 0 {
			threads = m.decideWaiting(&n, threads, r, int(s.npend))
			n.threads = m.stepRune(threads, r, m.b[:0])
			m.b = n.threads
			n.prev = m.kindOf(r)
			break
		}

		// The bytes before b are not UTF-8: read each of them as a broken byte.
		threads = m.stepBroken(&s, &n)
		fallthrough
	case !m.reverse:
		m.stepFirstByte(&n, threads, rep)
	default:
		m.stepBack(&s, &n, rep)
	}

	t := m.intern(&n)
	m.trans[from|uint32(m.p.class[b])] = t
	return t
}

// stepFirstByte reads b as the first byte of a rune, and sets n to the state after it.
func (m *machine) stepFirstByte(n *state, threads []uint32, b byte) {
	leads := b >= 0xC2 && b <= 0xF4
	r := m.resolve(threads, n, lookAt(b), leads)
	switch {
	// No thread goes on: the state after b is dead.
	case len(r) == 0 && n.found:
	// This is a rune of one byte.
	case b < utf8.RuneSelf:
		n.threads = m.stepRune(r, rune(b), m.b[:0])
		m.b = n.threads
		n.prev = m.kindOf(rune(b))
	// This is a lead byte: the rune is complete later.
	case leads:
		n.threads = r
		n.pend, n.npend = [3]byte{b}, 1
	// No rune begins with this byte: it is broken.
	default:
		n.threads = m.stepRune(r, utf8.RuneError, m.b[:0])
		m.b = n.threads
		n.prev = prevOther
	}
}

// lookAt returns a rune that assertions treat like byte b.
func lookAt(b byte) rune {
	if b >= utf8.RuneSelf {
		return ' '
	}
	return rune(b)
}

// extendRune reads b as the next byte of the unfinished rune of s, and returns the rune. If further
// bytes are missing, it adds b to s and returns -1 and more. If b does not belong to the rune, it
// returns -1 without more.
func extendRune(s *state, b byte) (r rune, more bool) {
	if b < 0x80 || b > 0xBF {
		return -1, false
	}

	var buf [4]byte
	copy(buf[:], s.pend[:s.npend])
	buf[s.npend] = b
	read := buf[:s.npend+1]

	// FullRune is also true for bytes that can never become a rune; their size below differs.
	if !utf8.FullRune(read) {
		s.pend[s.npend] = b
		s.npend++
		return -1, true
	}

	r, size := utf8.DecodeRune(read)
	if size != len(read) {
		return -1, false
	}
	return r, false
}

// stepBroken reads the bytes of the unfinished rune of s as broken bytes, because no byte completes
// the rune. It returns the threads after these bytes, and stores in n a match that ends between two
// of them.
func (m *machine) stepBroken(s *state, n *state) []uint32 {
	threads := s.threads
	for i := range int(s.npend) {
		// A match may end between two broken bytes, npend-i bytes before the byte read now.
		if i > 0 {
			before := n.delta
			n.delta = noMatch
			threads = m.resolve(threads, n, ' ', false)
			if n.delta >= 0 {
				n.delta = int8(int(s.npend) - i)
			} else {
				n.delta = before
			}
		} else {
			threads = m.decideWaiting(n, threads, utf8.RuneError, int(s.npend))
		}

		threads = slices.Clone(m.stepRune(threads, utf8.RuneError, m.b[:0]))
		n.prev = prevOther
	}
	return threads
}

// resolve decides the assertions for which threads wait, given the next rune, and starts new
// threads. It returns the threads that will read the next rune, and stores a match in n. open says
// that only the first byte of the next rune is known: threads whose assertion depends on the whole
// rune continue to wait.
func (m *machine) resolve(threads []uint32, n *state, next rune, open bool) []uint32 {
	ctx := m.assertionsBetween(n.prev, next, open)

	// Go in the order of priority. A match ends the threads of lower priority. In reverse the
	// longest match counts, so all threads go on.
	m.marks.clear()
	out := m.a[:0]
	cut := false
	for _, pc := range threads {
		if out, cut = m.expand(out, pc, ctx, open); cut {
			n.delta = 0
			if m.reverse {
				cut = false
				continue
			}

			// No thread of lower priority can win any more.
			n.found = true
			break
		}
	}

	// A match may also begin here. Its threads have the lowest priority, because the leftmost match
	// wins.
	if !m.reverse && !n.found {
		older := len(out)
		if out, cut = m.expand(out, uint32(m.prog.Start), ctx, open); cut && m.p.empty {
			n.delta, n.found = 0, true
		}

		// A thread that began here and waits for the end of a word has read nothing.
		for i := older; open && m.p.words && !m.p.empty && i < len(out); i++ {
			if m.isWaiting(out[i]) {
				out[i] = uint32(len(m.prog.Inst) - 1)
			}
		}
	}

	m.a = out
	return out
}

// stepRune lets the threads of list read rune r, and appends the threads after it to out. They stop
// before the next rune or an assertion.
func (m *machine) stepRune(list []uint32, r rune, out []uint32) []uint32 {
	m.marks.clear()
	for _, pc := range list {
		in := &m.prog.Inst[pc]
		if !in.MatchRune(r) {
			continue
		}

		out = m.follow(out, in.Out)

		// Threads after a match have lower priority, and cannot win.
		if n := len(out); !m.reverse && n > 0 && m.prog.Inst[out[n-1]].Op == syntax.InstMatch {
			break
		}
	}

	// Backward there are no priorities. Sorting makes equal sets the same state.
	if m.reverse {
		slices.Sort(out)
	}
	return out
}

// follow appends the threads that pc leads to without reading a rune and without deciding an
// assertion. In a forward machine no thread follows a match. If the expression has assertions, it
// appends only pc itself: in a loop with assertions, the order of the threads depends on which of
// them hold, which is not known yet.
func (m *machine) follow(out []uint32, pc uint32) []uint32 {
	if m.p.asserts && !m.reverse {
		if m.marks.add(pc) {
			out = append(out, pc)
		}
		return out
	}

	out, match := m.followWith(out, pc, func(uint32, *syntax.Inst) (through, waits bool) { return false, true })
	if match != 0 {
		out = append(out, match)
	}
	return out
}

// expand appends the threads that pc leads to without reading a rune, also through assertions that
// hold in ctx. It reports whether it reached a match, at which a forward machine stops. open is as
// in resolve.
func (m *machine) expand(out []uint32, pc uint32, ctx syntax.EmptyOp, open bool) ([]uint32, bool) {
	out, match := m.followWith(out, pc, func(pc uint32, in *syntax.Inst) (through, waits bool) {
		// An assertion holds if everything that it asks for is in ctx.
		return syntax.EmptyOp(in.Arg)&^ctx == 0, open && m.isWaiting(pc)
	})
	return out, match != 0
}

// followWith appends the threads that pc leads to without reading a rune, in the order of their
// priority. It returns the match that it reached; 0 for none. For each assertion it calls
// assertion: through means to go on, waits means that a thread waits there.
func (m *machine) followWith(out []uint32, pc uint32, assertion func(pc uint32, in *syntax.Inst) (through, waits bool)) (_ []uint32, match uint32) {
	// Search depth first, because out is in the order of priority.
	stack := append(m.stack[:0], pc)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !m.marks.add(pc) {
			continue
		}

		in := &m.prog.Inst[pc]
		switch in.Op {
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)

		case syntax.InstEmptyWidth:
			if through, waits := assertion(pc, in); through {
				stack = append(stack, in.Out)
			} else if waits {
				out = append(out, pc)
			}

		case syntax.InstMatch:
			match = pc
			if !m.reverse {
				stack = stack[:0]
			}
		default:
			out = append(out, pc)
		}
	}
	m.stack = stack
	return out, match
}

// matchAtEnd returns the delta of state from if no further byte is read after it; noMatch if no
// match ends there. next is the rune after the bytes that were read (in reverse, before them); -1
// if there is none.
func (m *machine) matchAtEnd(from uint32, next rune) int8 {
	s := &m.states[from>>m.p.shift]
	if next < 0 && s.atEnd != notYet {
		return s.atEnd
	}

	n := state{found: s.found, delta: noMatch, prev: s.prev}
	threads := s.threads
	if s.npend > 0 {
		if m.reverse {
			threads = m.stepBrokenBack(s, &n)
		} else {
			threads = m.stepBroken(s, &n)
		}
	}

	// A match that ends here replaces one that stepBroken found between broken bytes.
	before := n.delta
	n.delta = noMatch
	m.resolve(threads, &n, next, false)
	if n.delta < 0 {
		n.delta = before
	}

	// Cache the result only if it does not depend on next.
	if next < 0 {
		s.atEnd = n.delta
	}
	return n.delta
}

// sparse is a set of small numbers that clear empties in one step: n is a member if
// memberSince[n] == generation.
type sparse struct {
	memberSince []uint32
	generation  uint32
}

func (s *sparse) init(n int) { s.memberSince = make([]uint32, n) }

// clear empties the set. It erases old members only when the generation overflows.
func (s *sparse) clear() {
	s.generation++
	if s.generation == 0 {
		clear(s.memberSince)
		s.generation = 1
	}
}

// add adds n and reports whether it is new.
func (s *sparse) add(n uint32) bool {
	if s.memberSince[n] == s.generation {
		return false
	}
	s.memberSince[n] = s.generation
	return true
}

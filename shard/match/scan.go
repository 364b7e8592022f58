package match

import "errors"

// errStopped is the error of a search after [Matcher.Stop].
var errStopped = errors.New("search was stopped")

// makeRoom makes sure that the machine has room for one more state. A full machine drops all states
// but from, whose new offset makeRoom returns. After Stop it returns an error.
func (m *machine) makeRoom(from uint32) (uint32, error) {
	if m.stop.Load() {
		return 0, errStopped
	}
	if !m.full() {
		return from, nil
	}
	s := m.states[from>>m.p.shift]
	m.reset()
	return m.intern(&s) & stateOf, nil
}

// contextBefore returns the kind of the rune before an offset, on which assertions depend.
func (m *machine) contextBefore(text []byte, at int) prevKind { return m.kindOf(runeBefore(text, at)) }

// contextAfter returns the kind of the rune after an offset, on which assertions depend.
func (m *machine) contextAfter(text []byte, at int) prevKind { return m.kindOf(runeAt(text, at)) }

// forward returns the end of the leftmost-first match that starts in text[from:] and ends at limit
// or before, or -1. It reads at most the byte at limit, which decides whether a match ends there.
//
// If skip is not nil, forward calls it in an idle state with the current offset, and continues at
// the offset that skip returns; at -1 it stops.
func (m *machine) forward(text []byte, from, limit int, skip func(at int) int) (int, error) {
	stop := min(limit+1, len(text))
	s := m.start(m.contextBefore(text, from))

	class, trans := &m.p.class, m.trans
	last, i := -1, from // end of the latest match; offset of the next byte

	// A transition without a flag takes only these few instructions.
	for i < stop {
		t := trans[s|uint32(class[text[i]])]
		if t&flagged == 0 {
			s = t
			i++
			continue
		}

		// This transition is new: compute it.
		if t == unknown {
			var err error
			if s, err = m.makeRoom(s); err != nil {
				return -1, err
			}
			t = m.step(s, text[i])
			trans = m.trans
		}

		s = t & stateOf

		i++
		if t&flagged == 0 {
			continue
		}

		// The transition is flagged: its state has a match, or is dead, or can skip.
		st := &m.states[s>>m.p.shift]
		if st.delta >= 0 {
			last = i - 1 - int(st.delta)
		}

		if st.dead(readForward) {
			return last, nil
		}

		// No thread is running, so the next match begins at the next candidate.
		if skip != nil && st.idle() {
			next := skip(i)
			if next < 0 || next > limit {
				return last, nil
			}
			if next > i {
				i = next
				s = m.start(m.contextBefore(text, i))
				trans = m.trans
			}
		}
	}

	// At the end of the text, decide the assertions for which threads waited for the next byte.
	if i >= len(text) && limit >= len(text) {
		if d := m.matchAtEnd(s, -1); d >= 0 {
			last = len(text) - int(d)
		}
	}
	return last, nil
}

// backward returns the smallest start, not below from, of a match that ends at end.
func (m *machine) backward(text []byte, from, end int) (int, error) {
	s := m.start(m.contextAfter(text, end))
	class, trans := &m.p.class, m.trans

	first, i := -1, end

	// As in forward, but from the right.
	for i > from {
		t := trans[s|uint32(class[text[i-1]])]
		if t&flagged == 0 {
			s = t
			i--
			continue
		}

		// This transition is new: compute it.
		if t == unknown {
			var err error
			if s, err = m.makeRoom(s); err != nil {
				return -1, err
			}
			t = m.step(s, text[i-1])
			trans = m.trans
		}

		s = t & stateOf
		i--
		if t&flagged == 0 {
			continue
		}

		// If a match starts here, continue: another one that ends at end may start earlier.
		st := &m.states[s>>m.p.shift]
		if st.delta >= 0 {
			first = i + 1 + int(st.delta)
		}
		if st.dead(readBackward) {
			return first, nil
		}
	}

	// The rune before i decides the assertions at i.
	if d := m.matchAtEnd(s, runeBefore(text, i)); d >= 0 {
		first = i + int(d)
	}
	return first, nil
}

package match

import "errors"

// errStopped is the error of a search after [Matcher.Stop].
var errStopped = errors.New("search was stopped")

// makeRoom makes room for a step from state from. A full machine forgets all other states.
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

// contextBefore returns what assertions see before an offset.
func (m *machine) contextBefore(text []byte, at int) prevKind { return m.kindOf(runeBefore(text, at)) }

// contextAfter returns what assertions see after an offset.
func (m *machine) contextAfter(text []byte, at int) prevKind { return m.kindOf(runeAt(text, at)) }

// forward returns the end of the leftmost-first match that starts in text[from:], or -1. It does
// not read beyond limit. A match that ends at limit needs the byte at limit, or the end of the
// text. With any, it returns the end of the first match that it finds.
//
// If skip is not nil, an idle machine calls it to learn where to continue; -1 means nowhere.
func (m *machine) forward(text []byte, from, limit int, any bool, skip func(at int) int) (int, error) {
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

		// The state is flagged: it has a match, or is dead, or can skip.
		st := &m.states[s>>m.p.shift]
		if st.delta >= 0 {
			last = i - 1 - int(st.delta)
			if any {
				return last, nil
			}
		}

		if st.dead(false) {
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

	// Threads that waited for a byte are decided by the end of the text.
	if i >= len(text) && limit >= len(text) {
		if d := m.end(s, -1); d >= 0 {
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

		// The smallest start counts, so drop a later one.
		st := &m.states[s>>m.p.shift]
		if st.delta >= 0 {
			first = i + 1 + int(st.delta)
		}
		if st.dead(true) {
			return first, nil
		}
	}

	// The byte before from decides the assertions at from.
	if d := m.end(s, runeBefore(text, i)); d >= 0 {
		first = i + int(d)
	}
	return first, nil
}

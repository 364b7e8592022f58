package match

import "errors"

// errStopped is what a search returns after [Matcher.Stop].
var errStopped = errors.New("search was stopped")

// makeRoom makes room for the step from state from: a machine that is full starts
// over with that state alone.
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

// contextBefore returns what assertions see before position at.
func (m *machine) contextBefore(text []byte, at int) prevKind { return m.kindOf(runeBefore(text, at)) }

// contextAfter returns what assertions see after position at.
func (m *machine) contextAfter(text []byte, at int) prevKind { return m.kindOf(runeAt(text, at)) }

// forward returns the end of the leftmost-first match that starts in text[from:], or
// -1. It reads no further than limit: a match that ends there needs the byte at
// limit, or the end of the text. With any, the end of the first match found will do.
//
// Where the machine is idle, skip, if not nil, says where to go on; -1 is nowhere.
func (m *machine) forward(text []byte, from, limit int, any bool, skip func(at int) int) (int, error) {
	stop := min(limit+1, len(text))
	s := m.start(m.contextBefore(text, from))

	class, trans := &m.p.class, m.trans
	last, i := -1, from // the end of the match found last; what is read next

	// A transition without a flag costs these few instructions.
	for i < stop {
		t := trans[s|uint32(class[text[i]])]
		if t&flagged == 0 {
			s = t
			i++
			continue
		}

		// Seen for the first time: work it out.
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

		// The state is flagged: a match, an end, or a place to skip from.
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

		// Idle: no thread is under way, so the next match begins at the next candidate.
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

	// The end of the text decides what waited for a byte.
	if i >= len(text) && limit >= len(text) {
		if d := m.end(s, -1); d >= 0 {
			last = len(text) - int(d)
		}
	}
	return last, nil
}

// backward returns the smallest start, at from or later, of a match that ends at end.
func (m *machine) backward(text []byte, from, end int) (int, error) {
	s := m.start(m.contextAfter(text, end))
	class, trans := &m.p.class, m.trans

	first, i := -1, end

	// As in forward, from the right.
	for i > from {
		t := trans[s|uint32(class[text[i-1]])]
		if t&flagged == 0 {
			s = t
			i--
			continue
		}

		// Seen for the first time: work it out.
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

		// A later start is forgotten: the smallest one counts.
		st := &m.states[s>>m.p.shift]
		if st.delta >= 0 {
			first = i + 1 + int(st.delta)
		}
		if st.dead(true) {
			return first, nil
		}
	}

	// The assertions at from are decided by the byte before it.
	if d := m.end(s, runeBefore(text, i)); d >= 0 {
		first = i + int(d)
	}
	return first, nil
}

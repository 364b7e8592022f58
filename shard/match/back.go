package match

import "unicode/utf8"

// stepBack sets n to the state of a reverse machine after it reads byte b in state s. A reverse
// machine reads the continuation bytes of a rune first, the last one first. It stores them in pend
// until it reads the lead byte:
//
//	text    E2 82 AC 41 82 82        read from the right
//	pend                82           wait for a lead
//	                 82 82           still waiting
//	              41                 no lead: two broken bytes, then 'A'
//	           AC, 82, then E2       a whole rune
func (m *machine) stepBack(s, n *state, b byte) {
	k := int(s.npend)
	threads := s.threads
	if k > 0 {
		var readAll bool
		if threads, readAll = m.stepPending(s, n, b); readAll {
			return
		}
	}

	r := m.resolve(threads, n, lookAt(b), b >= utf8.RuneSelf && b <= 0xBF)
	switch {
	case b < utf8.RuneSelf:
		n.threads = m.stepRune(r, rune(b), m.b[:0])
		m.b = n.threads
		n.prev = m.kindOf(rune(b))

	// Keep a continuation byte until its lead byte comes.
	case b <= 0xBF:
		n.threads = r
		n.pend, n.npend = [3]byte{b}, 1

	// A lead byte without continuation bytes is broken.
	default:
		n.threads = m.stepRune(r, utf8.RuneError, m.b[:0])
		m.b = n.threads
		n.prev = prevOther
	}
}

// stepPending reads b in a state s with pending continuation bytes. If readAll is true, n is the
// state after b. Otherwise the pending bytes are not UTF-8: stepPending has read them as broken
// bytes, and the caller must read b with the returned threads.
func (m *machine) stepPending(s, n *state, b byte) (threads []uint32, readAll bool) {
	k := int(s.npend)

	// One more continuation byte comes: at most three may wait for a lead byte.
	if b >= 0x80 && b <= 0xBF {
		if k < 3 {
			n.threads, n.pend = s.threads, s.pend
			n.pend[k], n.npend = b, s.npend+1
			return nil, true
		}
		n.threads = m.resolveBetween(m.stepBrokenFirst(s, n, 1), n, k-1, true)
		n.pend, n.npend = [3]byte{s.pend[1], s.pend[2], b}, 3
		return nil, true
	}

	// ASCII is no lead byte, so all pending bytes are broken.
	if b < utf8.RuneSelf {
		return m.stepBrokenBack(s, n), false
	}

	// A lead byte comes: put the pending bytes after it, in the order of the text.
	buf := [4]byte{b}
	for i := range k {
		buf[i+1] = s.pend[k-1-i]
	}

	r, size := utf8.DecodeRune(buf[:k+1])
	if size == 1 {
		return m.stepBrokenBack(s, n), false
	}
	threads = s.threads

	// Pending bytes that are not part of the rune are broken. The rune precedes them.
	if broken := k + 1 - size; broken > 0 {
		threads = m.resolveBetween(m.stepBrokenFirst(s, n, broken), n, k-broken, true)
	}
	threads = m.decideWaiting(n, threads, r, size-1)
	n.threads = m.stepRune(threads, r, m.b[:0])
	m.b = n.threads
	n.prev = m.kindOf(r)
	return nil, true
}

// stepBrokenBack reads all pending bytes of s as broken bytes, and returns the threads after them.
func (m *machine) stepBrokenBack(s, n *state) []uint32 {
	return m.stepBrokenFirst(s, n, int(s.npend))
}

// stepBrokenFirst reads the first count pending bytes of s as broken bytes, and returns the threads
// after them. It does not decide the assertions after the last of them.
func (m *machine) stepBrokenFirst(s, n *state, count int) []uint32 {
	threads := s.threads
	for i := range count {
		if i > 0 {
			threads = m.resolveBetween(threads, n, int(s.npend)-i, false)
		} else {
			threads = m.decideWaiting(n, threads, utf8.RuneError, int(s.npend))
		}
		n.threads = m.stepRune(threads, utf8.RuneError, m.b[:0])
		m.b = n.threads
		threads = append([]uint32(nil), n.threads...)
		n.prev = prevOther
	}
	return threads
}

// resolveBetween decides assertions, as resolve does, between two broken bytes or a broken byte and
// a rune, and sets n.delta if a match ends there. left is the number of pending bytes that the
// machine has not read yet. open is as in resolve.
func (m *machine) resolveBetween(threads []uint32, n *state, left int, open bool) []uint32 {
	before := n.delta
	n.delta = noMatch
	threads = m.resolve(threads, n, ' ', open)
	if n.delta >= 0 {
		n.delta = int8(left)
	} else {
		n.delta = before
	}
	return threads
}

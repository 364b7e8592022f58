package trigram

// MayBegin reports whether one of the conditions of f may begin at a byte of text[:to]. The bytes
// after to are context only.
//
// Use it for a line that begins in the unit before a run of candidates and ends in the first
// candidate. A condition that begins in a unit lies in the window of that unit. So a match whose
// first condition begins in the unit before would make that unit a candidate, which it is not. If
// no condition begins in the rest of the line either, the line has no match, and the unit before
// need not be read to find the start of the line.
func (f *Formula) MayBegin(text []byte, to int) bool {
	return f.root == nil || f.root.mayBegin(text, to)
}

// mayBegin reports whether the condition n may begin at a byte of text[:to].
func (n *node) mayBegin(text []byte, to int) bool {
	// A sequence or a union may begin where one of its members may.
	for _, sub := range n.subs {
		if sub.mayBegin(text, to) {
			return true
		}
	}

	if n.op != opFactor && n.op != opRun {
		return false
	}

	for i := range to {
		if n.special && text[i] >= 0x80 || n.holdsAt(text, i) {
			return true
		}
	}
	return false
}

// holdsAt reports whether a factor or run may be at an offset. Bytes after the end of text are
// unknown, so they always fit.
func (n *node) holdsAt(text []byte, at int) bool {
	rest := text[at:]
	if n.op == opRun {
		bit := uint8(1) << n.class
		for _, b := range rest[:min(n.count, len(rest))] {
			if runBits[b]&bit == 0 {
				return n.special && b >= 0x80
			}
		}
		return true
	}

	// A factor has a class of bytes for each position.
	for k, set := range n.set {
		if k == len(rest) {
			break
		}
		if !set.has(foldByte[rest[k]]) {
			return n.special && rest[k] >= 0x80
		}
	}
	return true
}

package trigram

// MayBegin reports whether one of the conditions of f may begin at a byte of text[:to]. The bytes
// after to are context only.
//
// Use it for a line that begins in unit u-1, which is no candidate, and ends in unit u, which is
// one. A condition lies in the window of the unit in which it begins. So no condition of a match
// begins in u-1. If none begins in the part of the line that is in u either, the line has no match,
// and the caller need not read u-1 to find the start of the line.
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
	text = text[at:]
	if n.op == opRun {
		bit := uint8(1) << n.class
		for _, b := range text[:min(n.count, len(text))] {
			if runBits[b]&bit == 0 {
				return n.special && b >= 0x80
			}
		}
		return true
	}

	// A factor has a class of bytes for each position.
	for k, set := range n.set {
		if k == len(text) {
			break
		}
		if !set.has(foldByte[text[k]]) {
			return n.special && text[k] >= 0x80
		}
	}
	return true
}

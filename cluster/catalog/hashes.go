package catalog

// hashCount is for how many entries a node remembers its state hash. The leader reads its own
// hash, and its CheckHash arrives fewer entries later.
const hashCount = 1024

// hashes are the state hashes after the last entries, in a ring by index. Two nodes compare hashes
// of one index, even if one has applied more entries.
type hashes struct {
	ring     []struct{ index, hash uint64 }
	diverged bool
}

func (h *hashes) remember(index, hash uint64) {
	if h.ring == nil {
		h.ring = make([]struct{ index, hash uint64 }, hashCount)
	}
	h.ring[index%hashCount] = struct{ index, hash uint64 }{index, hash}
}

func (h *hashes) at(index uint64) (hash uint64, known bool) {
	if h.ring == nil || index == 0 || h.ring[index%hashCount].index != index {
		return 0, false
	}
	return h.ring[index%hashCount].hash, true
}

// compare records a divergence if this node had another hash after that entry. An entry that it
// does not remember, as before a snapshot, proves nothing.
func (h *hashes) compare(index, hash uint64) {
	if own, known := h.at(index); known && own != hash {
		h.diverged = true
	}
}

// HashAt returns the state hash after an entry. It is known only for the last hashCount entries.
func (s *State) HashAt(index uint64) (hash uint64, known bool) { return s.hashes.at(index) }

// Diverged reports whether this state once differed from that of the proposer of a CheckHash, after
// the same entry. Such a state must no longer be trusted.
func (s *State) Diverged() bool { return s.hashes.diverged }

// endEntry records the state hash after an entry.
func (s *State) endEntry() {
	s.rehashMeta()
	s.hashes.remember(s.meta.Index, s.Hash())
}

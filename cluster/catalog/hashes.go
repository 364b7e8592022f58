package catalog

// hashesKept is for how many entries a node remembers its state hash: more than
// come between the moment a leader reads its own and the entry that tells it.
const hashesKept = 1024

// hashes are the state hashes after the last entries, each where its index says.
// So two nodes compare what they had at one index, however far they are.
type hashes struct {
	ring     []struct{ index, hash uint64 }
	diverged bool
}

func (h *hashes) note(index, hash uint64) {
	if h.ring == nil {
		h.ring = make([]struct{ index, hash uint64 }, hashesKept)
	}
	h.ring[index%hashesKept] = struct{ index, hash uint64 }{index, hash}
}

func (h *hashes) at(index uint64) (hash uint64, known bool) {
	if h.ring == nil || index == 0 || h.ring[index%hashesKept].index != index {
		return 0, false
	}
	return h.ring[index%hashesKept].hash, true
}

// compare notes where this node had another hash. What it does not remember, as
// from before a snapshot, it does not judge.
func (h *hashes) compare(index, hash uint64) {
	if own, known := h.at(index); known && own != hash {
		h.diverged = true
	}
}

// HashAt is the state hash after an entry, where that is one of the last
// thousand that this state has applied.
func (s *State) HashAt(index uint64) (hash uint64, known bool) { return s.hashes.at(index) }

// Diverged reports whether this state was another than that of the proposer of a
// CheckHash, after the same entry. It must not be trusted any more.
func (s *State) Diverged() bool { return s.hashes.diverged }

// applied ends an entry.
func (s *State) applied() {
	s.rehashMeta()
	s.hashes.note(s.meta.Index, s.Hash())
}

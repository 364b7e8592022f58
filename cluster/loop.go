package cluster

// maxRestores is how often the same snapshot may come without an entry after
// it.
const maxRestores = 4

// restoreLoop notices a follower that gets the same snapshot from the leader
// again and again. raft forgets, after it has installed a snapshot, that the
// entries after it were dropped from the log; it refuses the entries that the
// leader sends next, and gets the snapshot anew. A start reads the end of the
// log from the disk, where store.IsMonotonic has had it emptied, so the end of
// the process is the cure.
type restoreLoop struct {
	exit func(reason string) // nil for a machine without a process

	index uint64 // of the last snapshot restored
	times int
}

// restored notes a snapshot.
func (l *restoreLoop) restored(index uint64) {
	if index != l.index {
		l.index, l.times = index, 0
	}
	if l.times++; l.times == maxRestores && l.exit != nil {
		l.exit("the leader sends the same snapshot again and again")
	}
}

// applied notes an entry.
func (l *restoreLoop) applied(index uint64) {
	if index > l.index {
		l.times = 0
	}
}

// IsMonotonic implements raft.MonotonicLogStore: when raft installs a
// snapshot, the whole log before it goes. Otherwise entries that contradict
// the leader's would be kept behind the snapshot.
func (s *store) IsMonotonic() bool { return true }

package cluster

// maxRestores is how often the same snapshot may arrive without an entry in between.
const maxRestores = 4

// restoreLoop detects a follower that receives the same snapshot again and again. After installing
// a snapshot, raft forgets that the later entries were dropped from its log. It then refuses the
// leader's next entries, and gets the snapshot again. A restart helps: it reads the end of the log
// from the disk, which is empty because of IsMonotonic.
type restoreLoop struct {
	exit func(reason string) // may be nil

	index uint64 // of the last restored snapshot
	times int
}

// restored counts a restored snapshot.
func (l *restoreLoop) restored(index uint64) {
	if index != l.index {
		l.index, l.times = index, 0
	}
	if l.times++; l.times == maxRestores && l.exit != nil {
		l.exit("the leader sends the same snapshot again and again")
	}
}

// applied resets the count when a new entry is applied.
func (l *restoreLoop) applied(index uint64) {
	if index > l.index {
		l.times = 0
	}
}

// IsMonotonic implements raft.MonotonicLogStore. It makes raft delete the whole log when it
// installs a snapshot. Otherwise entries that contradict the leader's would stay behind it.
func (s *store) IsMonotonic() bool { return true }

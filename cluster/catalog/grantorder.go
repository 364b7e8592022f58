package catalog

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// turnKey returns the key of a job in turns, the index of waiting jobs. Keys sort by kind, then by
// the order in which jobs are granted.
//
//	1 byte    kind
//	1 byte    urgency
//	12 bytes  the time since which it could be granted: seconds and nanoseconds
//	          subject
func turnKey(j *Job) string {
	key := append(make([]byte, 0, turnKeyHead+len(j.Subject)), byte(j.Kind), urgency(j))
	ready := j.readyAt()
	key = binary.BigEndian.AppendUint64(key, uint64(ready.Unix())^1<<63) // flip the sign bit: earlier times sort first
	key = binary.BigEndian.AppendUint32(key, uint32(ready.Nanosecond()))
	return string(append(key, j.Subject...))
}

// turnKeyHead is the length in bytes of a key in turns, without the subject.
const turnKeyHead = 2 + 8 + 4

// urgency is 0 for jobs that a person requested, 1 for repositories that were never indexed, and 2
// for the others. Lower values go first.
func urgency(j *Job) byte {
	switch {
	case j.Urgent:
		return 0
	case j.GoodAt.IsZero():
		return 1
	}
	return 2
}

// maxUrgency is the largest urgency.
const maxUrgency = 2

// readyAt returns the time since which a waiting job could be granted.
func (j *Job) readyAt() time.Time {
	if j.NotBefore.After(j.EnqueuedAt) {
		return j.NotBefore
	}
	return j.EnqueuedAt
}

// isWaiting reports whether a job belongs in the index turns.
func (j *Job) isWaiting() bool { return j.State == JobWaiting || j.State == JobBackoff }

// GrantedBefore reports whether a waiting job is granted before o: the more urgent one first, then
// the one that is ready for longer.
func (j *Job) GrantedBefore(o *Job) bool {
	a, b := turnKey(j), turnKey(o)
	return a[1:] < b[1:] || a[1:] == b[1:] && j.Kind < o.Kind
}

// JobsToGrant iterates over the jobs of a kind that can be granted now, in order. The cost depends
// on the jobs taken, not on how many wait.
func (v *View) JobsToGrant(kind JobKind, now time.Time) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for urgency := range byte(maxUrgency + 1) {
			prefix := string([]byte{byte(kind), urgency})
			for turn := range tree.Under(v.turns.From, prefix) {
				// Keys of one urgency sort by time: after the first job that is not ready, none is.
				j := v.Job(kind, turn[turnKeyHead-len(prefix):])
				if j.NotBefore.After(now) {
					break
				}
				if !yield(j) {
					return
				}
			}
		}
	}
}

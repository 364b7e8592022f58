package catalog

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// granting is the place of a job in turns, the index of the jobs that wait: kind, then
// the order in which they are granted.
//
//	1 byte    kind
//	1 byte    urgency
//	12 bytes  the time since which it could be granted: seconds and nanoseconds
//	          subject
func granting(j *Job) string {
	key := append(make([]byte, 0, grantHead+len(j.Subject)), byte(j.Kind), urgency(j))
	ready := j.readyAt()
	key = binary.BigEndian.AppendUint64(key, uint64(ready.Unix())^1<<63) // the sign last: earlier is less
	key = binary.BigEndian.AppendUint32(key, uint32(ready.Nanosecond()))
	return string(append(key, j.Subject...))
}

// grantHead is the bytes of a place in turns before the subject.
const grantHead = 2 + 8 + 4

// urgency orders those that a person asked for before repositories that were never
// indexed, and these before the others.
func urgency(j *Job) byte {
	switch {
	case j.Urgent:
		return 0
	case j.GoodAt.IsZero():
		return 1
	}
	return 2
}

// mostUrgency is the largest urgency.
const mostUrgency = 2

// readyAt is the time since which a waiting job could be granted.
func (j *Job) readyAt() time.Time {
	if j.NotBefore.After(j.EnqueuedAt) {
		return j.NotBefore
	}
	return j.EnqueuedAt
}

// waits reports whether a job is in turns.
func (j *Job) waits() bool { return j.State == JobWaiting || j.State == JobBackoff }

// GrantedBefore reports whether a waiting job has its turn before another: the more
// urgent first, then the one that could be granted longer.
func (j *Job) GrantedBefore(o *Job) bool {
	a, b := granting(j), granting(o)
	return a[1:] < b[1:] || a[1:] == b[1:] && j.Kind < o.Kind
}

// JobsToGrant goes through the jobs of a kind that can be granted now, in the order of
// their turns. It costs what is taken of it, however many wait.
func (v *View) JobsToGrant(kind JobKind, now time.Time) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for class := range byte(mostUrgency + 1) {
			prefix := string([]byte{byte(kind), class})
			for turn := range tree.Under(v.turns.From, prefix) {
				// Those behind it are not ready either.
				j := v.Job(kind, turn[grantHead-len(prefix):])
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

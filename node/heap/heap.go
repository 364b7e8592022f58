// Package heap says how far the heap of this process may grow between two
// collections. The setting is the process's, whichever node of it asks, and so is
// the count of those who ask.
//
// What may be garbage, with what is live on the left:
//
//	      usual    while something large runs
//	 20 MB   64 MB      6 MB
//	 64 MB   64 MB     19 MB
//	500 MB  500 MB    150 MB
//
// A node that searches keeps a small heap: as the runtime has it, a twelfth of the
// processor's time under load is the collector's.
package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// room is the garbage in bytes that even a small heap may have.
	room = 64 << 20
	// mostPercent is the highest GOGC.
	mostPercent = 400
	// smallPercent is GOGC while something large runs. On Linux it lowers the peak by some 15 MB
	// against 50, at no measurable CPU cost; 20 would cost 5 %.
	smallPercent = 30
	// usualPercent is Go's default GOGC.
	usualPercent = 100
)

// process is the setting of this process.
var process = setting{set: debug.SetGCPercent, live: liveBytes}

// setting controls GOGC.
type setting struct {
	set  func(percent int) (before int)
	live func() uint64 // bytes that the last collection left

	mu     sync.Mutex // guards the fields below
	small  int        // callers who want a small heap
	before int        // value before the first of them
	roomy  bool       // GOGC follows the live heap after each collection
	now    int        // last value set for that; 0 = none
}

// Small keeps the heap small until end is called. Large builds call it, because they run when the
// heap is largest and make little garbage. Large listings do too, because their garbage is many
// times what they keep. It is safe for concurrent use.
func Small() (end func()) { return process.keepSmall() }

// KeepRoom lets a small heap grow a little, until the process ends. If the operator has set GOGC,
// that value stays.
func KeepRoom() { process.keepRoom(afterCollections) }

func (s *setting) keepSmall() (end func()) {
	s.begin()
	return sync.OnceFunc(s.end)
}

func (s *setting) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The first caller lowers GOGC, the last one restores it.
	if s.small++; s.small > 1 {
		return
	}
	s.before = s.set(smallPercent)
	if s.before >= 0 && s.before < smallPercent {
		s.set(s.before) // the operator wants an even smaller heap
	}
}

func (s *setting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.small--; s.small == 0 {
		s.set(s.before)
	}
}

// keepRoom sets GOGC by the live heap now and whenever each calls its function.
func (s *setting) keepRoom(each func(func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roomy {
		return
	}

	current := s.set(usualPercent)
	if current != usualPercent {
		s.set(current)
		return
	}
	s.roomy = true
	each(s.adjust)
}

// adjust sets GOGC by the live heap. While the heap is kept small, it stores the value for later.
func (s *setting) adjust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := percentFor(s.live())

	// Setting GOGC stops the world for a moment, so ignore small changes.
	if s.now > 0 && math.Abs(float64(want-s.now)) <= 0.1*float64(s.now) {
		return
	}
	s.now = want
	if s.small > 0 {
		s.before = want
		return
	}
	s.set(want)
}

// percentFor returns the GOGC with which garbage may reach room, or the size of the live heap if
// that is larger.
func percentFor(live uint64) int {
	return int(min(max(100*room/max(live, 1), usualPercent), mostPercent))
}

// liveBytes returns what the last collection left, in bytes.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollections calls f after each collection from now on. A call may begin before the
// previous one has ended.
func afterCollections(f func()) {
	// The next collection cleans up an unreachable object. Make the next object first, because a
	// collection may begin while f runs.
	var arm func()
	arm = func() {
		runtime.AddCleanup(new([16]byte), func(struct{}) { arm(); f() }, struct{}{})
	}
	arm()
}

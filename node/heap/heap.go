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
	// room is the garbage, in bytes, that a heap may hold however small it is.
	room = 64 << 20
	// mostPercent bounds GOGC where next to nothing is live.
	mostPercent = 400
	// smallPercent is GOGC while something large runs: for Linux a peak some 15 MB
	// lower than with 50, and no more CPU that could be measured; 20 costs 5 % of it.
	smallPercent = 30
	// usualPercent is GOGC where nobody has set it.
	usualPercent = 100
)

// process is the setting of this process.
var process = setting{set: debug.SetGCPercent, live: liveBytes}

// setting is GOGC, and who asks for what.
type setting struct {
	set  func(percent int) (before int)
	live func() uint64 // bytes that the last collection left

	mu     sync.Mutex // guards the fields below
	small  int        // how many ask for a small heap
	before int        // as it was before the first of them
	roomy  bool       // after each collection it is set by what is live
	now    int        // what was set last for that; 0 for nothing yet
}

// Small keeps the heap small until end is called. Large builds ask for it, as what
// the collector lets grow is at its greatest when one is under way, and a build leaves
// little garbage to collect; and large listings, whose garbage is many times what they
// keep. It is safe for concurrent use.
func Small() (end func()) { return process.keepSmall() }

// KeepRoom gives a small heap room, from now until the process ends. Who runs it may
// have set GOGC, which then holds.
func KeepRoom() { process.keepRoom(afterCollections) }

func (s *setting) keepSmall() (end func()) {
	s.begin()
	return sync.OnceFunc(s.end)
}

func (s *setting) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The first one lowers it, the last one puts it back.
	if s.small++; s.small > 1 {
		return
	}
	s.before = s.set(smallPercent)
	if s.before >= 0 && s.before < smallPercent {
		s.set(s.before) // who runs the node wants it smaller still
	}
}

func (s *setting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.small--; s.small == 0 {
		s.set(s.before)
	}
}

// keepRoom sets GOGC by what is live, each time that each says so.
func (s *setting) keepRoom(each func(func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roomy {
		return
	}

	told := s.set(usualPercent)
	if told != usualPercent {
		s.set(told)
		return
	}
	s.roomy = true
	each(s.adjust)
}

// adjust sets GOGC by what is live. What has begun to keep the heap small meanwhile
// is left to end it.
func (s *setting) adjust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := percentFor(s.live())

	// Setting it stops the world for a moment: a little more or less is not worth that.
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

// percentFor is GOGC by which a heap has room: that much of live is room, or all of live.
func percentFor(live uint64) int {
	return int(min(max(100*room/max(live, 1), usualPercent), mostPercent))
}

// liveBytes is what the last collection has left, in bytes.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollections calls f after each collection from now on; a call may begin before
// the last one has ended.
func afterCollections(f func()) {
	// A thing that nobody holds is cleaned up by the next collection. The next thing comes
	// first: a collection that began while f runs would find none.
	var arm func()
	arm = func() {
		runtime.AddCleanup(new([16]byte), func(struct{}) { arm(); f() }, struct{}{})
	}
	arm()
}

package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// runtimeLike is a fake runtime: a GOGC setting and the live bytes.
type runtimeLike struct {
	setting
	percent, sets int
	liveBytes     uint64
	collected     func() // called after a collection
}

func newRuntimeLike(percent int) *runtimeLike {
	r := &runtimeLike{percent: percent}
	r.set = func(p int) int {
		before := r.percent
		r.percent = p
		r.sets++
		return before
	}
	r.live = func() uint64 { return r.liveBytes }
	return r
}

// collect ends a collection with so many live bytes.
func (r *runtimeLike) collect(live uint64) {
	r.liveBytes = live
	r.collected()
}

func (r *runtimeLike) wants(t *testing.T, when string, percent int) {
	t.Helper()
	if r.percent != percent {
		t.Errorf("%s: GOGC is %d, want %d", when, r.percent, percent)
	}
}

// Builds of two nodes in one process begin and end in any order. GOGC is low while any runs, and
// then returns to its first value.
func TestGOGC_isLowWhileAnyBuildRuns(t *testing.T) {
	t.Parallel()
	r := newRuntimeLike(100)
	first, second := r.keepSmall(), r.keepSmall()
	r.wants(t, "while two build", smallPercent)
	first()
	first() // a second call has no effect
	r.wants(t, "while one builds", smallPercent)
	second()
	r.wants(t, "afterwards", 100)
}

func TestGOGC_ofTheOperatorWins(t *testing.T) {
	t.Parallel()
	r := newRuntimeLike(20)
	end := r.keepSmall()
	r.wants(t, "while something builds", 20)
	end()
	r.wants(t, "afterwards", 20)
}

func TestGOGC_dependsOnLiveBytes(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 1 << 30: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes are live: %d, want %d", live, got, want)
		}
	}
}

func TestGOGC_isUnchangedForASmallHeap(t *testing.T) {
	t.Parallel()
	r := newRuntimeLike(100)
	r.keepRoom(func(f func()) { r.collected = f })
	r.collect(32 << 20)
	r.wants(t, "with 32 MB live", 200)

	// A small change does not set GOGC again.
	sets := r.sets
	r.collect(33 << 20)
	if r.sets != sets {
		t.Error("GOGC was set for a megabyte")
	}
	r.collect(500 << 20)
	r.wants(t, "with 500 MB live", 100)

	// A build keeps GOGC low, whatever is live. Afterwards it fits the live bytes.
	end := r.keepSmall()
	r.collect(40 << 20)
	r.wants(t, "while something builds", smallPercent)
	end()
	r.wants(t, "afterwards, with 40 MB live", 160)
}

func TestGOGC_ofTheOperatorIsKeptAfterCollections(t *testing.T) {
	t.Parallel()
	r := newRuntimeLike(50)
	r.keepRoom(func(func()) { t.Error("it is changed after collections") })
	r.wants(t, "told 50", 50)
}

// Each collection of the runtime is noticed, even if it begins right after the previous one was
// reported.
func TestGarbageCollections_areNoticed(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{}, 100)
	afterCollections(func() {
		select {
		case seen <- struct{}{}:
		default: // others collect as well
		}
	})
	for range 3 {
		runtime.GC()
		select {
		case <-seen:
		case <-time.After(time.Minute):
			t.Fatal("a collection was not noticed")
		}
	}
	if liveBytes() == 0 {
		t.Error("nothing is live after a collection")
	}
}

// Not parallel, because the setting belongs to the process.
func TestGOGC_isSetForTheWholeProcess(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	end := Small()
	if got := debug.SetGCPercent(smallPercent); got != smallPercent {
		t.Errorf("GOGC is %d, want %d", got, smallPercent)
	}
	end()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("afterwards GOGC is %d", got)
	}
}

package job

import (
	"runtime/debug"
	"testing"
)

// Builds of two nodes in one process begin and end in any order: GOGC is low
// while any runs, and afterwards what it was before the first. Not parallel:
// the setting is the process's.
func TestGOGCIsLowWhileAnyNodeOfTheProcessBuilds(t *testing.T) {
	current := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	before := current()
	low := min(before, buildGOGC)

	first, second := smallHeap(), smallHeap()
	if got := current(); got != low {
		t.Errorf("while two build: %d, want %d", got, low)
	}
	first()
	first() // an end counts once
	if got := current(); got != low {
		t.Errorf("while one builds: %d, want %d", got, low)
	}
	second()
	if got := current(); got != before {
		t.Errorf("afterwards: %d, before %d", got, before)
	}
}

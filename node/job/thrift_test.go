package job

import (
	"runtime/debug"
	"testing"
)

// TestThriftEndsWithTheLastBuild is not parallel: the setting is the process's.
func TestThriftEndsWithTheLastBuild(t *testing.T) {
	current := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	before := current()
	var th thrift
	first, second := th.begin(), th.begin()
	if got := current(); got != min(before, thriftyPercent) {
		t.Errorf("while two build: %d", got)
	}
	first()
	if got := current(); got != min(before, thriftyPercent) {
		t.Errorf("while one builds: %d", got)
	}
	second()
	if got := current(); got != before {
		t.Errorf("afterwards: %d, before %d", got, before)
	}
}

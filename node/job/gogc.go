package job

import (
	"runtime/debug"
	"sync"
)

const (
	// largeBuild is the text, in bytes, from which on a build is large.
	largeBuild = 64 << 20
	// buildGOGC is GOGC while a large build runs: for Linux a peak of 140 MB of
	// heap instead of 186, and a tenth of a second more of collecting.
	buildGOGC = 50
)

// gogc is GOGC while large builds and listings run in this process, whichever node they
// belong to: the setting is the process's, so is the count.
var gogc gogcSetting

// gogcSetting lowers GOGC while somebody asks for it.
type gogcSetting struct {
	mu      sync.Mutex // guards the fields below
	builds  int
	percent int // as it was before
}

// smallHeap makes the garbage collector keep the heap small until end is
// called. Large builds ask for it, as what it lets grow is at its greatest when
// one is under way, and a build leaves little garbage to collect; and large
// listings, whose garbage is many times what they keep.
func smallHeap() (end func()) {
	gogc.begin()
	return sync.OnceFunc(gogc.end)
}

func (s *gogcSetting) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The first one lowers it, the last one puts it back.
	if s.builds++; s.builds > 1 {
		return
	}
	s.percent = debug.SetGCPercent(buildGOGC)
	if s.percent >= 0 && s.percent < buildGOGC {
		debug.SetGCPercent(s.percent) // who runs the node wants it smaller still
	}
}

func (s *gogcSetting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.builds--; s.builds == 0 {
		debug.SetGCPercent(s.percent)
	}
}

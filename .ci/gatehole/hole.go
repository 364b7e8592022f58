package account

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Holes are the places that call the gate, each of which can be made a hole
// through which a viewer sees everything. It is for one test alone.
var Holes holes

type holes struct {
	mu    sync.Mutex
	sites map[string]bool
	open  map[string]bool
}

// Open makes some places holes, and all others whole.
func (h *holes) Open(sites ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = map[string]bool{}
	for _, s := range sites {
		h.open[s] = true
	}
}

// Sites returns the code locations that have called the gate so far.
func (h *holes) Sites() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.sites))
}

// through returns the viewer, or the operator where the call of the gate under way
// is a hole.
func through(v catalog.Viewer) catalog.Viewer {
	// The caller is the place of the mutation, known by its function.
	pc := make([]uintptr, 1)
	runtime.Callers(3, pc) // past Callers, through and Repos
	frame, _ := runtime.CallersFrames(pc).Next()
	site := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]

	Holes.mu.Lock()
	defer Holes.mu.Unlock()
	if Holes.sites == nil {
		Holes.sites = map[string]bool{}
	}
	Holes.sites[site] = true
	if Holes.open[site] {
		return catalog.Operator()
	}
	return v
}

//go:build gatehole

package account

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// Sites are the places that have called the gate so far.
func (h *holes) Sites() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.sites))
}

func holed() bool {
	// The caller is the place of the mutation, known by its function.
	pc := make([]uintptr, 1)
	runtime.Callers(3, pc) // past Callers, holed and Repos
	frame, _ := runtime.CallersFrames(pc).Next()
	site := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]

	Holes.mu.Lock()
	defer Holes.mu.Unlock()
	if Holes.sites == nil {
		Holes.sites = map[string]bool{}
	}
	Holes.sites[site] = true
	return Holes.open[site]
}

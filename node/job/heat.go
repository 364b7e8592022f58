package job

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// When data is hot. A window is a minute.
const (
	hotTimes    = 3  // the mean of all units, at least
	hotShare    = 10 // one in so many parts of a core, at least: below nothing is gained
	hotWindows  = 5  // in a row, for another copy
	coldWindows = 60 // in a row, until the extra copies go
	mostExtra   = 2  // copies of a unit
	mostHot     = 32 // units at a time
)

// Meter counts how long this node searches each unit. It is safe for
// concurrent use.
type Meter struct {
	mu   sync.Mutex // guards the field below
	used map[uint64]time.Duration
}

// Add notes a search of some units, which share the time that it took.
func (m *Meter) Add(units []uint64, took time.Duration) {
	if len(units) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used == nil {
		m.used = map[uint64]time.Duration{}
	}
	for _, u := range units {
		m.used[u] += took / time.Duration(len(units))
	}
}

// Used is the time by unit since the node started.
func (m *Meter) Used() map[uint64]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.used)
}

// boosts decides which units have extra copies. It is arithmetic on values.
type boosts map[uint64]*boost

// boost is one unit that is hot or was.
type boost struct {
	extra     int
	hot, cold int // windows in a row
}

// window takes in how long each of all units was searched by all nodes in one
// window. members is the number of nodes: where units are fewer than they,
// the mean is that of the nodes.
func (b boosts) window(used map[uint64]time.Duration, units, members int, window time.Duration) {
	var all time.Duration
	for _, t := range used {
		all += t
	}
	bar := max(hotTimes*all/time.Duration(max(units, members, 1)), window/hotShare)
	for u, t := range used {
		if t > bar && b[u] == nil && len(b) < mostHot {
			b[u] = &boost{}
		}
	}
	for u, s := range b {
		if used[u] > bar {
			s.hot, s.cold = s.hot+1, 0
		} else {
			s.hot, s.cold = 0, s.cold+1
		}
		switch {
		case s.hot >= hotWindows && s.extra < mostExtra:
			s.extra, s.hot = s.extra+1, 0
		case s.cold >= coldWindows || s.extra == 0 && s.cold > 0:
			delete(b, u)
		}
	}
}

func (b boosts) extra() map[uint64]int {
	out := map[uint64]int{}
	for u, s := range b {
		if s.extra > 0 {
			out[u] = s.extra
		}
	}
	return out
}

// heat asks all nodes for what they searched while this node leads, and says
// which units get extra copies.
type heat struct {
	cluster  *cluster.Cluster
	log      *slog.Logger
	searched func(ctx context.Context, node string) (map[uint64]time.Duration, error)
	window   time.Duration
	copies   int

	mu   sync.Mutex // guards the field below
	want map[uint64]int
}

func newHeat(opt Options) *heat {
	return &heat{cluster: opt.Cluster, log: opt.Log, searched: opt.Searched, window: cmp.Or(opt.HeatWindow, time.Minute), copies: max(opt.Replicas, 1)}
}

// extra is the copies more of each unit. Until a new leader has seen a window
// it is what the one before has left behind.
func (h *heat) extra(view *catalog.View) map[uint64]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want == nil {
		return inherited(view, h.copies).extra()
	}
	return h.want
}

func (h *heat) run(ctx context.Context) {
	if h.searched == nil {
		return
	}
	var b boosts
	last := map[string]map[uint64]time.Duration{}
	for sleep(ctx, h.window) {
		if !h.cluster.Leading() {
			b = nil
			clear(last)
			h.tell(nil)
			continue
		}
		view := h.cluster.View()
		if b == nil {
			b = inherited(view, h.copies)
		}
		used, members := h.ask(ctx, last)
		units := 0
		for range view.Groups() {
			units++
		}
		b.window(used, units, members, h.window)
		h.tell(b.extra())
	}
}

// inherited are the boosts that the leader before has left behind: what has
// more targets than every unit was hot not long ago.
func inherited(view *catalog.View, copies int) boosts {
	b := boosts{}
	for g := range view.Groups() {
		if more := len(idsOf(view, g)) - copies; more > 0 && len(b) < mostHot {
			b[g.Number] = &boost{extra: min(more, mostExtra)}
		}
	}
	return b
}

// ask sums up what the live nodes have searched since they were asked last.
func (h *heat) ask(ctx context.Context, last map[string]map[uint64]time.Duration) (used map[uint64]time.Duration, members int) {
	ctx, cancel := context.WithTimeout(ctx, min(h.window, 5*time.Second))
	defer cancel()
	used = map[uint64]time.Duration{}
	for _, m := range h.cluster.Members() {
		if m.State == catalog.MemberRemoved || !m.Alive {
			continue
		}
		members++
		now, err := h.searched(ctx, m.ID)
		if err != nil {
			h.log.Debug("what a node searched is not known", "node", m.ID, "err", err)
			continue
		}
		before, known := last[m.ID]
		last[m.ID] = now
		if !known {
			continue // of a time that nobody knows the length of
		}
		for u, t := range now {
			if t < before[u] {
				before[u] = 0 // the node was started again
			}
			used[u] += t - before[u]
		}
	}
	return used, members
}

// unitName is a unit as an operator reads it.
func unitName(u uint64) string {
	if u < place.Groups {
		return fmt.Sprintf("group %d", u)
	}
	return fmt.Sprintf("slice %d of repository %d", u&0xffff, u>>16-1)
}

// tell sets what the next plan of placement has, and says what changes; nil
// when this node leads no more.
func (h *heat) tell(want map[uint64]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for u, n := range want {
		if n > h.want[u] {
			h.log.Info("data that is searched much gets another copy", "unit", unitName(u), "extra", n)
		}
	}
	for u := range h.want {
		if want != nil && want[u] == 0 {
			h.log.Info("data is no longer searched much, its extra copies go", "unit", unitName(u))
		}
	}
	h.want = want
}

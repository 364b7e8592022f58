package hold

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
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

// SearchTime counts how long this node searches each unit. It is safe for
// concurrent use.
type SearchTime struct {
	mu   sync.Mutex // guards the field below
	used map[uint64]time.Duration
}

// Add notes a search of some units, which share the time that it took.
func (m *SearchTime) Add(units []uint64, took time.Duration) {
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
func (m *SearchTime) Used() map[uint64]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.used)
}

// hotUnits decides which units have extra copies. It is arithmetic on values.
type hotUnits map[uint64]*hotUnit

// hotUnit is one unit that is hot or was.
type hotUnit struct {
	extra     int
	hot, cold int // windows in a row
}

// window takes in how long each of all units was searched by all nodes in one
// window. members is the number of nodes: where units are fewer than they,
// the mean is that of the nodes.
func (b hotUnits) window(used map[uint64]time.Duration, units, members int, window time.Duration) {
	var all time.Duration
	for _, t := range used {
		all += t
	}

	// Both bounds: much more than the mean, and enough to be worth a copy at all.
	bar := max(hotTimes*all/time.Duration(max(units, members, 1)), window/hotShare)

	for u, t := range used {
		if t > bar && b[u] == nil && len(b) < mostHot {
			b[u] = &hotUnit{}
		}
	}

	// Hot for some windows in a row before a copy is made, cold for some before it goes.
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

func (b hotUnits) extra() map[uint64]int {
	out := map[uint64]int{}
	for u, s := range b {
		if s.extra > 0 {
			out[u] = s.extra
		}
	}
	return out
}

// HotData asks all nodes for what they searched while this node leads, and
// says which units get extra copies.
type HotData struct {
	leader Leadership
	asked  func(ctx context.Context, node string) (map[uint64]time.Duration, error)
	opt    HotOptions

	mu   sync.Mutex // guards the field below
	want map[uint64]int
}

// Leadership is what a leader knows beside the catalog.
type Leadership interface {
	View() *catalog.View
	Leading() bool
	Members() []cluster.Member
}

// HotOptions is what HotData takes beside its parts.
type HotOptions struct {
	Replicas int           // copies wanted of everything
	Window   time.Duration // how long searches are counted; 0 means a minute
	Log      *slog.Logger
}

// NewHotData returns a HotData; Run makes it work. asked says how long a node
// has searched each unit so far; nil: no unit gets an extra copy.
func NewHotData(leader Leadership, asked func(ctx context.Context, node string) (map[uint64]time.Duration, error), opt HotOptions) *HotData {
	opt.Window = cmp.Or(opt.Window, time.Minute)
	return &HotData{leader: leader, asked: asked, opt: opt}
}

// Extra is the copies more of each unit. Until a new leader has seen a window
// it is what the one before has left behind.
func (h *HotData) Extra(view *catalog.View) map[uint64]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want == nil {
		return inherited(view, h.opt.Replicas).extra()
	}
	return h.want
}

// Run counts until the context ends.
func (h *HotData) Run(ctx context.Context) error {
	if h.asked == nil {
		return nil
	}

	var hot hotUnits
	last := map[string]map[uint64]time.Duration{}
	for clock.Wait(ctx, h.opt.Window) {
		// Only the leader counts: another one begins with what the catalog shows.
		if !h.leader.Leading() {
			hot = nil
			clear(last)
			h.tell(nil)
			continue
		}

		view := h.leader.View()
		if hot == nil {
			hot = inherited(view, h.opt.Replicas)
		}

		used, members := h.ask(ctx, last)
		units := 0
		for range view.Groups() {
			units++
		}
		hot.window(used, units, members, h.opt.Window)
		h.tell(hot.extra())
	}
	return nil
}

// inherited are the hot units that the leader before has left behind: what has
// more targets than every unit was hot not long ago.
func inherited(view *catalog.View, copies int) hotUnits {
	hot := hotUnits{}
	for g := range view.Groups() {
		if more := len(idsOf(view, g)) - copies; more > 0 && len(hot) < mostHot {
			hot[g.Number] = &hotUnit{extra: min(more, mostExtra)}
		}
	}
	return hot
}

// ask sums up what the live nodes have searched since they were asked last.
func (h *HotData) ask(ctx context.Context, last map[string]map[uint64]time.Duration) (used map[uint64]time.Duration, members int) {
	ctx, cancel := context.WithTimeout(ctx, min(h.opt.Window, 5*time.Second))
	defer cancel()

	used = map[uint64]time.Duration{}
	for _, m := range h.leader.Members() {
		if m.State == catalog.MemberRemoved || !m.Alive {
			continue
		}

		members++

		now, err := h.asked(ctx, m.ID)
		if err != nil {
			h.opt.Log.Debug("what a node searched is not known", "node", m.ID, "err", err)
			continue
		}

		before, known := last[m.ID]
		last[m.ID] = now
		if known { // else it is of a time that nobody knows the length of
			addSince(used, before, now)
		}
	}
	return used, members
}

// addSince adds what was used between two readings of one node.
func addSince(used, before, now map[uint64]time.Duration) {
	for u, t := range now {
		if t < before[u] {
			used[u] += t // the node was started again
			continue
		}
		used[u] += t - before[u]
	}
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
func (h *HotData) tell(want map[uint64]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for u, n := range want {
		if n > h.want[u] {
			h.opt.Log.Info("data that is searched much gets another copy", "unit", unitName(u), "extra", n)
		}
	}

	// Without a plan this node leads no more, and does not know what the next leader keeps.
	for u := range h.want {
		if want != nil && want[u] == 0 {
			h.opt.Log.Info("data is no longer searched much, its extra copies go", "unit", unitName(u))
		}
	}

	h.want = want
}

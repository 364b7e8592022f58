package call

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/place"
)

// Peers remembers how fast each node has answered, how many calls of this node
// it has not answered yet, and how many calls may be sent twice: a twentieth of
// all. It is safe for concurrent use.
type Peers struct {
	self  string
	alive func(node string) bool

	mu      sync.Mutex // guards the fields below
	took    map[string]*window
	waiting map[string]int
	tokens  float64
}

// window is the last durations of one node.
type window struct {
	last [64]time.Duration
	n    int
}

// The patience with a silent node.
const (
	HedgeFloor = 50 * time.Millisecond // no call is sent twice earlier
	StallTime  = time.Second           // a silent call is always sent twice after
)

const (
	hedgeShare = 0.05 // tokens earned by a call
	hedgeBurst = 10
)

// NewPeers makes the memory of a node. alive tells who can be reached now.
func NewPeers(self string, alive func(node string) bool) *Peers {
	return &Peers{self: self, alive: alive, took: map[string]*window{}, waiting: map[string]int{}, tokens: hedgeBurst}
}

// Begin notes that a call is on its way. Observe ends it.
func (p *Peers) Begin(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[node]++
}

// Observe notes the end of a call.
func (p *Peers) Observe(node string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Each call earns a part of a second one, so that these stay a small share.
	p.tokens = min(p.tokens+hedgeShare, hedgeBurst)
	if p.waiting[node]--; p.waiting[node] <= 0 {
		delete(p.waiting, node)
	}

	// A failure says nothing of how long an answer takes.
	if err != nil {
		return
	}

	w := p.took[node]
	if w == nil {
		w = &window{}
		p.took[node] = w
	}
	w.last[w.n%len(w.last)] = took
	w.n++
}

// Patience is how long a call to a node may be silent before it is sent to
// another too: twice its 95th percentile, from HedgeFloor to StallTime.
func (p *Peers) Patience(node string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.took[node]

	// Too few to tell what is usual.
	if w == nil || w.n < 8 {
		return StallTime
	}
	last := slices.Clone(w.last[:min(w.n, len(w.last))])
	slices.Sort(last)
	return min(max(2*last[len(last)*95/100], HedgeFloor), StallTime)
}

// AllowHedge takes a token, if there is one.
func (p *Peers) AllowHedge() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// Prefer orders members: this node, then those with the fewest calls of this
// node to answer, then by a hash of the key, so that in quiet times a node keeps
// what it has read; without those that cannot be reached.
func (p *Peers) Prefer(ids []string, key string) []string {
	live := make([]string, 0, len(ids))
	for _, id := range ids {
		if id == p.self || p.alive(id) {
			live = append(live, id)
		}
	}

	// With one left, or this node before another, there is nothing to order.
	if len(live) == 1 || len(live) == 2 && live[0] == p.self {
		return live
	}

	busy := p.busy(live)
	slices.SortFunc(live, func(a, b string) int {
		switch {
		case a == p.self:
			return -1
		case b == p.self:
			return 1

		// Equal ones by a hash of the key and the id: all nodes agree, and keys spread.
		case busy[a] != busy[b]:
			return busy[a] - busy[b]
		}
		return compareBy(key, a, b)
	})
	return live
}

// busy is how many calls each of some nodes has not answered.
func (p *Peers) busy(nodes []string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int, len(nodes))
	for _, n := range nodes {
		out[n] = p.waiting[n]
	}
	return out
}

// compareBy orders two members by their scores for a key.
func compareBy(key, a, b string) int {
	sa, sb := place.Score(place.Key(key), place.Member{ID: a}), place.Score(place.Key(key), place.Member{ID: b})
	switch {
	case sa > sb:
		return -1
	case sa < sb:
		return 1
	}
	return strings.Compare(a, b)
}

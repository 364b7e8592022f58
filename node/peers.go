package node

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/place"
)

// peers remembers how fast each node has answered, how many calls of this node
// it has not answered yet, and how many calls may be sent twice: a twentieth of
// all.
type peers struct {
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

const (
	hedgeShare = 0.05 // tokens earned by a call
	hedgeBurst = 10
)

func newPeers() *peers {
	return &peers{took: map[string]*window{}, waiting: map[string]int{}, tokens: hedgeBurst}
}

// begin notes that a call is on its way. observe ends it.
func (p *peers) begin(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[node]++
}

// busy is how many calls each of some nodes has not answered.
func (p *peers) busy(nodes []string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int, len(nodes))
	for _, n := range nodes {
		out[n] = p.waiting[n]
	}
	return out
}

// observe notes the end of a call.
func (p *peers) observe(node string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = min(p.tokens+hedgeShare, hedgeBurst)
	if p.waiting[node]--; p.waiting[node] <= 0 {
		delete(p.waiting, node)
	}
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

// patience is how long a call to a node may be silent before it is sent to
// another too: its 95th percentile, at least hedgeFloor, at most stallTime.
func (p *peers) patience(node string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.took[node]
	if w == nil || w.n < 8 {
		return stallTime
	}
	last := slices.Clone(w.last[:min(w.n, len(w.last))])
	slices.Sort(last)
	return min(max(2*last[len(last)*95/100], hedgeFloor), stallTime)
}

// allowHedge takes a token.
func (p *peers) allowHedge() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
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
	return compareStrings(a, b)
}

func compareStrings(a, b string) int { return strings.Compare(a, b) }

package call

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/place"
)

// Peers records for each node how fast it answers, how many calls are open, and when it
// last gave no answer. It also limits repeated calls to a twentieth of all calls.
// It is safe for concurrent use.
type Peers struct {
	net   Network
	alive func(node string) bool

	mu      sync.Mutex // guards the fields below
	took    map[string]*window
	waiting map[string]int
	missed  map[string]time.Time // when a node gave no answer; removed by its next answer
	tokens  float64
}

// window has the last durations of one node's answers.
type window struct {
	last  [64]time.Duration
	count int
}

// Patience with a silent node.
const (
	HedgeFloor = 50 * time.Millisecond // no call is repeated earlier
	StallTime  = time.Second           // a silent call is always repeated after this
)

// How long a missing answer counts. Gossip needs some seconds to notice a lost machine; after
// that it is wrong for moments only.
const (
	missedTime = 10 * time.Second // the node is asked after the others
	goneTime   = 30 * time.Second // a node that gossip calls dead is not asked
)

const (
	hedgeShare = 0.05 // tokens earned by each call
	hedgeBurst = 10
)

// NewPeers makes Peers. alive reports whether gossip can reach a node. It must be called before
// the network runs, because it also registers the answer to hello.
func NewPeers(net Network, alive func(node string) bool) *Peers {
	helloCall.Serve(net, func(context.Context, *Nothing) (*Nothing, error) { return new(Nothing), nil })
	return &Peers{
		net:     net,
		alive:   alive,
		took:    map[string]*window{},
		waiting: map[string]int{},
		missed:  map[string]time.Time{},
		tokens:  hedgeBurst,
	}
}

// Begin records the start of a call. The caller must call Observe at its end.
func (p *Peers) Begin(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[node]++
}

// Observe records the end of a call.
func (p *Peers) Observe(node string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Each call earns part of a token, so that repeated calls stay a small share.
	p.tokens = min(p.tokens+hedgeShare, hedgeBurst)
	if p.waiting[node]--; p.waiting[node] <= 0 {
		delete(p.waiting, node)
	}
	p.record(node, err)

	// A failure says nothing about the usual duration.
	if err != nil {
		return
	}

	w := p.took[node]
	if w == nil {
		w = &window{}
		p.took[node] = w
	}
	w.last[w.count%len(w.last)] = took
	w.count++
}

// Heard records whether a node has answered, without a duration.
func (p *Peers) Heard(node string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(node, err)
}

// Missed records that a node is silent.
func (p *Peers) Missed(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed[node] = clock.Now()
}

// record records what the result of a call says about the node. The caller must hold the lock.
func (p *Peers) record(node string, err error) {
	switch {
	case hasAnswered(err):
		delete(p.missed, node)

	// A cancelled call may not have reached the node yet.
	case Unanswered(err) && !errors.Is(err, context.Canceled):
		p.missed[node] = clock.Now()
	}
}

// hasAnswered reports whether the node has answered, even with an error.
func hasAnswered(err error) bool {
	remote, own := (*wire.RemoteError)(nil), (*Error)(nil)
	return err == nil || errors.As(err, &remote) || errors.As(err, &own)
}

// Unanswered reports whether a call failed because there was no connection, or because it broke.
func Unanswered(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrBroken)
}

// Patience returns how long a call to a node may be silent before it is repeated on another:
// twice the 95th percentile, from HedgeFloor to StallTime.
func (p *Peers) Patience(node string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.took[node]

	// There are too few durations for a percentile.
	if w == nil || w.count < 8 {
		return StallTime
	}
	last := slices.Clone(w.last[:min(w.count, len(w.last))])
	slices.Sort(last)
	return min(max(2*last[len(last)*95/100], HedgeFloor), StallTime)
}

// AllowHedge takes a token for a repeated call, if there is one.
func (p *Peers) AllowHedge() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// Prefer orders the live members: this node first, then those that answered lately, then those
// with the fewest open calls, then by a hash of the key. With the hash, a quiet node is asked for
// the same keys again and uses its caches. It drops members that gossip calls dead; see
// [Peers.Answering].
func (p *Peers) Prefer(ids []string, key string) []string {
	self := p.net.Self()
	live := make([]string, 0, len(ids))
	for _, id := range ids {
		if id == self || p.alive(id) {
			live = append(live, id)
		}
	}

	if len(live) == 1 || len(live) == 2 && live[0] == self {
		return live
	}

	busy := p.openCalls(live)
	slices.SortFunc(live, func(a, b string) int {
		switch {
		case a == self:
			return -1
		case b == self:
			return 1

		// With a hash of key and id, all nodes agree and keys spread.
		case busy[a] != busy[b]:
			return busy[a] - busy[b]
		}
		return compareBy(key, a, b)
	})
	return live
}

// openCalls returns the open calls of each node. A node that gave no answer a moment ago counts as
// busier than all others.
func (p *Peers) openCalls(nodes []string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int, len(nodes))
	for _, n := range nodes {
		out[n] = p.waiting[n]
		if p.missedWithin(n, missedTime) {
			out[n] += 1 << 30
		}
	}
	return out
}

// Misses reports whether a node gave no answer a moment ago, and none since.
func (p *Peers) Misses(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missedWithin(node, missedTime)
}

// missedWithin reports whether a node gave no answer within d. The caller must hold the lock.
func (p *Peers) missedWithin(node string, d time.Duration) bool {
	at, ok := p.missed[node]
	return ok && clock.Since(at) < d
}

// compareBy compares two members by their placement scores for a key.
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

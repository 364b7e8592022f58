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

// Peers remembers how fast each node has answered, how many calls of this node
// it has not answered yet, which gave no answer, and how many calls may be sent
// twice: a twentieth of all. It is safe for concurrent use.
type Peers struct {
	net   Network
	alive func(node string) bool

	mu      sync.Mutex // guards the fields below
	took    map[string]*window
	waiting map[string]int
	missed  map[string]time.Time // when a node gave no answer; one that has answered since is not in it
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

// How long it is remembered that a node gave no answer. Gossip takes some
// seconds to notice that a machine is gone; then it errs for moments only.
const (
	missedTime = 10 * time.Second // it is asked after the others
	goneTime   = 30 * time.Second // one that gossip calls dead is not asked
)

const (
	hedgeShare = 0.05 // tokens earned by a call
	hedgeBurst = 10
)

// NewPeers makes the record of how fast other nodes answer. alive tells who can be
// reached now, as far as gossip knows. It must be called before the network
// runs: from then on this node answers hello.
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
	p.note(node, err)

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

// Heard notes whether a node has answered a call, of which it does not matter
// how long it took.
func (p *Peers) Heard(node string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(node, err)
}

// Missed notes that a node is silent.
func (p *Peers) Missed(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed[node] = clock.Now()
}

// note remembers what a call tells of a node. The lock is held.
func (p *Peers) note(node string, err error) {
	switch {
	case answered(err):
		delete(p.missed, node)

	// One that was given up may have been on its way to a connection.
	case Unanswered(err) && !errors.Is(err, context.Canceled):
		p.missed[node] = clock.Now()
	}
}

// answered reports whether a call has ended with a word of the node, if only
// that it refuses.
func answered(err error) bool {
	remote, own := (*wire.RemoteError)(nil), (*Error)(nil)
	return err == nil || errors.As(err, &remote) || errors.As(err, &own)
}

// Unanswered reports whether a call failed because there is no connection to
// the node, or because that ended.
func Unanswered(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrBroken)
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

// Prefer orders members: this node, then those that gave an answer when they
// were last asked, then those with the fewest calls of this node to answer, then
// by a hash of the key, so that in quiet times a node keeps what it has read;
// without those that gossip calls dead, which are for [Peers.Answering].
func (p *Peers) Prefer(ids []string, key string) []string {
	self := p.net.Self()
	live := make([]string, 0, len(ids))
	for _, id := range ids {
		if id == self || p.alive(id) {
			live = append(live, id)
		}
	}

	// With one left, or this node before another, there is nothing to order.
	if len(live) == 1 || len(live) == 2 && live[0] == self {
		return live
	}

	busy := p.busy(live)
	slices.SortFunc(live, func(a, b string) int {
		switch {
		case a == self:
			return -1
		case b == self:
			return 1

		// Equal ones by a hash of the key and the id: all nodes agree, and keys spread.
		case busy[a] != busy[b]:
			return busy[a] - busy[b]
		}
		return compareBy(key, a, b)
	})
	return live
}

// busy is how many calls each of some nodes has not answered. One that gave no
// answer a moment ago counts as busier than all others.
func (p *Peers) busy(nodes []string) map[string]int {
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

// missedWithin reports whether a node gave no answer within some time. The lock
// is held.
func (p *Peers) missedWithin(node string, d time.Duration) bool {
	at, ok := p.missed[node]
	return ok && clock.Since(at) < d
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

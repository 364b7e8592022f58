package call

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
)

// helloCall only asks a node for an answer. A node that does not know it answers with an error,
// which is enough.
var helloCall = To[Nothing, Nothing](cluster.Hello)

// hello reports whether a node answers within atMost, and records if it does not.
func (p *Peers) hello(ctx context.Context, node string, atMost time.Duration) bool {
	within, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()

	_, err := helloCall.Ask(within, p.net, node, new(Nothing))
	switch {
	case hasAnswered(err):
		p.Heard(node, nil)
		return true

	// If the caller gave up, nothing is known about the node.
	case ctx.Err() == nil:
		p.Missed(node)
	}
	return false
}

// Late waits until a call has had no answer for StallTime. It returns false if ctx, the context
// of the call, ends before. Use it for cheap calls: repeating one costs less than checking
// whether the node still works on it. For this node it returns false at once, because repeating a
// call here would not help.
func (p *Peers) Late(ctx context.Context, node string) bool {
	if node == p.net.Self() || !clock.Wait(ctx, StallTime) {
		return false
	}
	p.Missed(node)
	return true
}

// Gone waits until a node gives no sign of life: while the call runs, it sends a hello every half
// of StallTime, and each hello must be answered in the same time. It returns false if ctx, the
// context of the call, ends before. Use it for expensive calls: however long the node works, no
// other node repeats the call. For this node it returns false at once.
func (p *Peers) Gone(ctx context.Context, node string) bool {
	if node == p.net.Self() {
		return false
	}

	for clock.Wait(ctx, StallTime/2) {
		if !p.hello(ctx, node, StallTime/2) {
			return ctx.Err() == nil
		}
	}
	return false
}

// Answering returns the members that answer a hello, within StallTime. It skips nodes that gossip
// calls dead and that gave no answer within goneTime, so that few calls wait for a dead node.
func (p *Peers) Answering(ctx context.Context, ids []string) []string {
	gone := func(id string) bool { return !p.alive(id) && p.gone(id) }
	return p.There(ctx, slices.DeleteFunc(slices.Clone(ids), gone))
}

// There returns the members that answer a hello. Unlike Answering it asks all of them, also those
// that gossip calls dead: an overloaded machine misses gossip, and a network may drop only its
// packets.
func (p *Peers) There(ctx context.Context, ids []string) []string {
	return p.answering(ctx, ids, StallTime)
}

// Signs waits half of StallTime and reports whether one of the nodes answers a hello. It does not
// wait if none of them answered a moment ago.
func (p *Peers) Signs(ctx context.Context, ids []string) bool {
	atMost := StallTime / 2
	if slices.ContainsFunc(ids, func(id string) bool { return !p.Misses(id) }) {
		clock.Wait(ctx, StallTime/2)
		atMost = StallTime
	}
	return len(p.answering(ctx, ids, atMost)) > 0
}

// answering returns the nodes that answer a hello within atMost.
func (p *Peers) answering(ctx context.Context, ids []string, atMost time.Duration) []string {
	// Ask all at once. Each goroutine has its own element, so the order stays.
	answers := make([]bool, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { answers[i] = p.hello(ctx, id, atMost) })
	}
	wg.Wait()

	var out []string
	for i, id := range ids {
		if answers[i] {
			out = append(out, id)
		}
	}
	return out
}

// gone reports whether a node gave no answer within goneTime.
func (p *Peers) gone(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missedWithin(node, goneTime)
}

package call

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
)

// helloCall asks a node for nothing but an answer. A node of a version that does
// not know it answers, too, with an error.
var helloCall = To[Nothing, Nothing](cluster.Hello)

// hello reports whether a node answers within some time, and remembers where it
// does not.
func (p *Peers) hello(ctx context.Context, node string, atMost time.Duration) bool {
	within, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()

	_, err := helloCall.Ask(within, p.net, node, new(Nothing))
	switch {
	case answered(err):
		p.Heard(node, nil)
		return true

	// That the asker has given up says nothing of the node.
	case ctx.Err() == nil:
		p.Missed(node)
	}
	return false
}

// Late waits until a call to a node is without an answer for StallTime, and
// reports false where ctx, that of the call, has ended before, and of this node
// at once. It is for calls that cost little: to make one twice is cheaper than to find out whether the
// node still works on it. This node is never late: it would only have more to do.
func (p *Peers) Late(ctx context.Context, node string) bool {
	if node == p.net.Self() || !clock.Wait(ctx, StallTime) {
		return false
	}
	p.Missed(node)
	return true
}

// Gone waits until a node to which a call is on its way gives no sign of life:
// it has not answered the call, nor within half of StallTime a hello beside it,
// of which one is sent every half of StallTime. It reports false where ctx, that
// of the call, has ended before, and of this node at once. It is for calls that cost much or have a large
// answer: however long the node works on one, nobody else does it again.
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

// Answering asks members whether they are there, and gives those that are. It takes
// StallTime at most. Who gave no answer, and is dead by gossip too, is not asked again
// for goneTime, so that of all the calls that lack the data of a dead node few wait
// for it.
func (p *Peers) Answering(ctx context.Context, ids []string) []string {
	gone := func(id string) bool { return !p.alive(id) && p.gone(id) }
	return p.There(ctx, slices.DeleteFunc(slices.Clone(ids), gone))
}

// There is Answering for a call that has to wait anyway: whoever gave no answer a
// moment ago is asked, too. Gossip errs for moments: a machine that is short of
// time misses its questions, a network loses packets and lets connections through.
func (p *Peers) There(ctx context.Context, ids []string) []string {
	return p.there(ctx, ids, StallTime)
}

// Signs waits for half of StallTime, and reports then whether one of some nodes answers a
// hello. It takes less where none of them gave an answer a moment ago.
func (p *Peers) Signs(ctx context.Context, ids []string) bool {
	atMost := StallTime / 2
	if slices.ContainsFunc(ids, func(id string) bool { return !p.Misses(id) }) {
		clock.Wait(ctx, StallTime/2)
		atMost = StallTime
	}
	return len(p.there(ctx, ids, atMost)) > 0
}

// there is the nodes that answer a hello within some time.
func (p *Peers) there(ctx context.Context, ids []string, atMost time.Duration) []string {
	// All at once. Each has its own place in the list, so the order stays.
	there := make([]bool, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { there[i] = p.hello(ctx, id, atMost) })
	}
	wg.Wait()

	var out []string
	for i, id := range ids {
		if there[i] {
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

package call

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// Race is one question that each of some nodes can answer. They are asked one
// after the other, not at once: a second one beside the first where that is
// silent, the next where one has failed.
//
//	n1 ──────── silent ─────────────── cancelled
//	               └─▶ n2 ── answer: that of the race
type Race[T any] struct {
	Nodes []string // the preferred first

	// Ask asks a node. Its context ends when the race does.
	Ask func(ctx context.Context, node string) (T, error)

	// Silent waits until a node that is being asked counts as silent. It reports
	// false where it never does, or where ctx, which ends with the call, has ended
	// before. Peers.Late and Peers.Gone are such.
	Silent func(ctx context.Context, node string) bool

	// Next reports whether another node may do better than one that failed so.
	// Every other error is the answer.
	Next func(err error) bool

	// Beyond names more nodes, when all of Nodes have failed or are silent. waiting
	// tells that a silent one is waited for, which is when it is called again each
	// StallTime: to look once more costs the asker nothing then. Who was asked
	// before may be among them.
	Beyond func(ctx context.Context, waiting bool) []string

	// Signs waits until it is known whether any node that can answer gives a sign of life:
	// one that is being asked now, or another. Where none does, the race is over: who asks at
	// a node that is cut off learns so before its patience ends. nil for a race that waits.
	Signs func(ctx context.Context, running []string) bool

	// Failed is told of each node that failed so that the next was asked.
	Failed func(node string, err error)
}

// ErrNobody is that a race had no node to ask, or none that gives a sign of life.
var ErrNobody = errors.New("there is no node to ask")

// Run gives the first answer. Where no node answers it fails with what the last
// one failed with, with ErrNobody where there was none, or with the error of ctx.
// Every call has ended when it returns. What a call panics with, it panics with.
func (r Race[T]) Run(ctx context.Context) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &course[T]{Race: r, ctx: ctx, left: r.Nodes, asked: map[string]bool{}, calls: map[int]string{}, events: make(chan step[T]), last: ErrNobody}
	defer c.wg.Wait()
	defer cancel() // before the wait, which would last as long as the slowest call

	c.next()
	signs := c.signs()
	for c.running > 0 {
		select {
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)

		case alive := <-signs:
			if !alive && ctx.Err() == nil {
				var none T
				return none, ErrNobody
			}
			signs = c.signs()

		case s := <-c.events:
			if c.take(s) {
				return s.answer, s.err
			}
		}
	}

	var none T
	return none, c.last
}

// course is a race that runs. At most one of the calls is of a node that is not
// known to be silent.
type course[T any] struct {
	Race[T]
	ctx    context.Context
	left   []string        // not asked yet
	asked  map[string]bool // some time or other
	looked bool            // beyond Nodes
	failed []string        // to be asked again

	calls   map[int]string // the nodes being asked, by the numbers of their calls
	begun   int            // calls so far, and the look beyond: each has its number
	running int            // of these
	hope    int            // the number of the one that is not silent; 0 for none
	events  chan step[T]
	last    error
	wg      sync.WaitGroup
}

// step is what happens in a race.
type step[T any] struct {
	call   int // its number
	node   string
	silent bool // it goes on

	answer      T
	err         error
	panic       string   // that the call ended with, and where
	more        []string // from beyond, with no node
	retryFailed bool     // those that have failed are asked once more, too
}

// take takes a step in, and reports whether it is the end.
func (c *course[T]) take(s step[T]) bool {
	// A call that is silent is not over: its answer may be the first yet.
	if !s.silent {
		c.running--
		delete(c.calls, s.call)
	}

	switch {
	case s.panic != "":
		panic(s.panic)
	case s.silent:
	case s.node == "":
		fresh := slices.DeleteFunc(s.more, func(node string) bool { return c.asked[node] })
		c.left = append(c.left, fresh...)
		if s.retryFailed {
			c.left, c.failed = append(c.failed, c.left...), nil
		}
	case s.err == nil || c.ctx.Err() != nil || !c.Next(s.err):
		return true
	default:
		c.last, c.failed = s.err, append(c.failed, s.node)
		c.Failed(s.node, s.err)
	}

	// Of one that was silent before, the next has been asked already, unless there was none.
	if c.hope == s.call || c.hope == 0 && !s.silent {
		c.hope = 0
		c.next()
	}
	return false
}

// next asks the next node. Where none is left, it looks beyond, and then, as long
// as there is somebody to wait for anyway, asks those that have failed again and
// looks beyond once more.
func (c *course[T]) next() {
	switch {
	case len(c.left) > 0:
		node := c.left[0]
		c.left = c.left[1:]
		c.ask(node)

	case !c.looked && c.Beyond != nil:
		c.looked = true
		c.findMore(0)

	// All that run are silent. Who could not answer a moment ago is the better hope.
	case c.running > 0 && (len(c.failed) > 0 || c.Beyond != nil):
		c.findMore(StallTime)
	}
}

// findMore waits, then asks Beyond for further nodes. After a wait the failed nodes are
// tried again too.
func (c *course[T]) findMore(after time.Duration) {
	waiting := c.running > 0
	number := c.begin()
	c.wg.Go(func() {
		s := step[T]{call: number, retryFailed: after > 0}
		if clock.Wait(c.ctx, after) && c.Beyond != nil {
			s.more = c.Beyond(c.ctx, waiting)
		}
		c.tell(s)
	})
}

// begin counts a call, on which the hope rests now, and gives its number.
func (c *course[T]) begin() int {
	c.begun++
	c.running++
	c.hope = c.begun
	return c.begun
}

// ask sends a call, and watches whether the node is silent.
func (c *course[T]) ask(node string) {
	c.asked[node] = true
	number := c.begin()
	c.calls[number] = node
	ctx, end := context.WithCancel(c.ctx)

	c.wg.Go(func() {
		defer end() // of the watch, too

		s := step[T]{call: number, node: node}
		s.panic = Caught(func() { s.answer, s.err = c.Ask(ctx, node) })
		c.tell(s)
	})
	c.wg.Go(func() {
		if c.Silent(ctx, node) {
			c.tell(step[T]{call: number, node: node, silent: true})
		}
	})
}

// signs looks for a sign of life beside the calls, once.
func (c *course[T]) signs() <-chan bool {
	if c.Signs == nil {
		return nil
	}
	found := make(chan bool, 1)
	running := slices.Collect(maps.Values(c.calls))
	c.wg.Go(func() { found <- c.Signs(c.ctx, running) })
	return found
}

// tell hands a step on, unless the race is over.
func (c *course[T]) tell(s step[T]) {
	select {
	case c.events <- s:
	case <-c.ctx.Done():
	}
}

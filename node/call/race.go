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

// Race is one question that each of some nodes can answer. It first asks one node. It asks the next
// one if a node is silent for too long, or fails.
//
//	n1 ──────── silent ─────────────── cancelled
//	               └─▶ n2 ── answer: that of the race
type Race[T any] struct {
	Nodes []string // in the order of preference

	// Ask calls a node. Its context ends with the race.
	Ask func(ctx context.Context, node string) (T, error)

	// Silent waits until a node counts as silent. It returns false if it never does, or if ctx,
	// which ends with the call, ends before. Peers.Late and Peers.Gone are such functions.
	Silent func(ctx context.Context, node string) bool

	// Next reports whether another node may succeed after this error. Any other error is the
	// answer of the race.
	Next func(err error) bool

	// Beyond returns more nodes when all of Nodes have failed or are silent. waiting reports that
	// the race still waits for a silent node. Then Beyond is called again every StallTime, which
	// costs nothing while waiting. The result may contain nodes that were asked before.
	Beyond func(ctx context.Context, waiting bool) []string

	// Signs waits until it knows whether any node that could answer gives a sign of life: one of
	// running, or another. If none does, the race ends, so that a caller at an isolated node
	// learns it early. nil never ends the race.
	Signs func(ctx context.Context, running []string) bool

	// Failed is called for each failure after which another node is asked.
	Failed func(node string, err error)
}

// ErrNobody means that a race had no node to ask, or that none gives a sign of life.
var ErrNobody = errors.New("there is no node to ask")

// Run returns the first answer. If no node answers, it returns the last error, ErrNobody if there
// was no node, or the error of ctx. All calls have ended when it returns. It repeats a panic of a
// call.
func (r Race[T]) Run(ctx context.Context) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &course[T]{Race: r, ctx: ctx, left: r.Nodes, asked: map[string]bool{}, calls: map[int]string{}, events: make(chan step[T]), last: ErrNobody}
	defer c.wg.Wait()
	defer cancel() // before the wait, which otherwise lasts as long as the slowest call

	c.askNext()
	signs := c.checkLife()
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
			signs = c.checkLife()

		case s := <-c.events:
			if c.handleStep(s) {
				return s.answer, s.err
			}
		}
	}

	var none T
	return none, c.last
}

// course is the state of a running race. At most one call at a time is to a node that is not
// known to be silent: the current one.
type course[T any] struct {
	Race[T]
	ctx         context.Context
	left        []string        // not asked yet
	asked       map[string]bool // ever asked
	askedBeyond bool            // Beyond was called
	failed      []string        // to be asked again

	calls   map[int]string // nodes being asked, by number of the call
	begun   int            // numbers given out, to calls and to Beyond
	running int            // how many of these run
	current int            // number of the current call; 0 if all are silent
	events  chan step[T]
	last    error
	wg      sync.WaitGroup
}

// step is an event of a race.
type step[T any] struct {
	call   int // number of the call
	node   string
	silent bool // the node is silent, and the call goes on

	answer      T
	err         error
	panic       string   // panic and stack of the call
	more        []string // nodes from Beyond, if node is ""
	retryFailed bool     // also ask the failed nodes again
}

// handleStep processes a step, and reports whether the race is over.
func (c *course[T]) handleStep(s step[T]) bool {
	// A silent call goes on: its answer may still be the first.
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

	// If the call was silent before, the next node is asked already, unless there was none.
	if c.current == s.call || c.current == 0 && !s.silent {
		c.current = 0
		c.askNext()
	}
	return false
}

// askNext asks the next node. If none is left, it calls Beyond. After that, while a call is running,
// it repeatedly asks the failed nodes and Beyond again.
func (c *course[T]) askNext() {
	switch {
	case len(c.left) > 0:
		node := c.left[0]
		c.left = c.left[1:]
		c.ask(node)

	case !c.askedBeyond && c.Beyond != nil:
		c.askedBeyond = true
		c.findMoreNodes(0)

	// All running calls are silent, so nodes that failed before are the better hope.
	case c.running > 0 && (len(c.failed) > 0 || c.Beyond != nil):
		c.findMoreNodes(StallTime)
	}
}

// findMoreNodes waits and then asks Beyond for further nodes. After a wait, the failed nodes are tried
// again too.
func (c *course[T]) findMoreNodes(after time.Duration) {
	waiting := c.running > 0
	number := c.beginCall()
	c.wg.Go(func() {
		s := step[T]{call: number, retryFailed: after > 0}
		if clock.Wait(c.ctx, after) && c.Beyond != nil {
			s.more = c.Beyond(c.ctx, waiting)
		}
		c.send(s)
	})
}

// beginCall gives the next number to a call and makes it the current one.
func (c *course[T]) beginCall() int {
	c.begun++
	c.running++
	c.current = c.begun
	return c.begun
}

// ask calls a node, and watches for its silence.
func (c *course[T]) ask(node string) {
	c.asked[node] = true
	number := c.beginCall()
	c.calls[number] = node
	ctx, end := context.WithCancel(c.ctx)

	c.wg.Go(func() {
		defer end() // also ends the watch

		s := step[T]{call: number, node: node}
		s.panic = Caught(func() { s.answer, s.err = c.Ask(ctx, node) })
		c.send(s)
	})
	c.wg.Go(func() {
		if c.Silent(ctx, node) {
			c.send(step[T]{call: number, node: node, silent: true})
		}
	})
}

// checkLife starts one check for signs of life.
func (c *course[T]) checkLife() <-chan bool {
	if c.Signs == nil {
		return nil
	}
	found := make(chan bool, 1)
	running := slices.Collect(maps.Values(c.calls))
	c.wg.Go(func() { found <- c.Signs(c.ctx, running) })
	return found
}

// send passes a step to Run, unless the race is over.
func (c *course[T]) send(s step[T]) {
	select {
	case c.events <- s:
	case <-c.ctx.Done():
	}
}

package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// caller is the client's side of a connection. One call is in flight at most:
//
//	        roundTrip           the answer came
//	idle ──────────────▶ wait ──────────────────▶ idle
//	                      │ giveUp                 ▲
//	                      ▼     the answer came    │
//	                     lost ─────────────────────┘
//	                      │ none came within drainTime
//	                      ▼
//	                     dead    from any state, too, when the connection ends
type caller struct {
	l     *link
	key   poolKey
	since time.Time // when it became idle; guarded by the pool

	mu    sync.Mutex // guards the fields below
	count uint32     // calls so far: the number of the latest one
	wait  chan reply // takes the answer to the call in flight; nil while nobody waits
	lost  bool       // the call in flight was given up, its answer has still to come
	dead  bool       // the connection has ended
}

// reply is what listen hands to the waiting roundTrip: a response or error
// frame, or why the connection ended.
type reply struct {
	f   frame
	err error
}

// drainTime is how long a given-up call may keep its connection.
const drainTime = 2 * time.Second

// Call runs a method on a node and returns its output. The handler gets the
// deadline of ctx, and its own context ends when ctx does. An error wraps
//
//	ErrUnreachable  the call was not sent: it is safe to try again
//	ErrBroken       the connection broke: nobody knows whether the call took effect
//	*RemoteError    the handler failed
//	the error of ctx, when the caller gave up
//
// Any number of goroutines may call; MaxCallsToNode calls to one node run at a
// time, the others wait for their turn.
func (p *Port) Call(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{Target: t, proto: Call}, false, method, in)
}

// CallAside is Call with slots of its own: it never waits for the end of other calls.
// It is for questions that a node answers at once.
func (p *Port) CallAside(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{Target: t, proto: Call, aside: true}, false, method, in)
}

// CallAnew is Call on a connection that is opened for it: those that were kept may
// all have broken at once, which is not noticed of each at the same moment.
func (p *Port) CallAnew(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{Target: t, proto: Call}, true, method, in)
}

// CallJoin is Call for methods of HandleJoin: from and to nodes that are in no
// cluster yet.
func (p *Port) CallJoin(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{Target: t, proto: Join}, false, method, in)
}

// ask takes a slot, finds or opens a connection, and makes one call on it. anew
// passes over those that were kept.
func (p *Port) ask(ctx context.Context, k poolKey, anew bool, method string, in []byte) ([]byte, error) {
	fail := func(err error) error {
		return fmt.Errorf("call %s on %s: %w", method, name(k.Target), err)
	}

	if err := checkCall(ctx, method, in); err != nil {
		return nil, fail(err)
	}

	// From here on leave gives the slot back.
	if err := p.pool.enter(ctx, k); err != nil {
		return nil, fail(err)
	}
	defer p.pool.leave(k)

	var c *caller
	if !anew {
		c = p.pool.get(k)
	}
	if c == nil {
		var err error
		if c, err = p.open(ctx, k); err != nil {
			return nil, fail(err)
		}
	}

	f, err := p.roundTrip(ctx, c, method, in)
	if err == nil && f.kind == errorFrame {
		err = p.kinds.remote(c.l.peer, f.body)
	}

	if err != nil {
		return nil, fail(err)
	}
	return f.body, nil
}

// open dials a node and starts to read what it sends.
func (p *Port) open(ctx context.Context, k poolKey) (*caller, error) {
	l, err := p.dial(ctx, k.Target, k.proto)
	if err != nil {
		// A caller that gave up is told so, whatever dialing says of it.
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}

	c := &caller{l: l, key: k}
	if !p.begin(func() { p.listen(c) }) {
		l.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// begin starts a goroutine that Run waits for. It reports false, and starts
// nothing, once the port has ended.
func (p *Port) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return false
	}

	p.wg.Go(f)
	return true
}

// name is a target as error messages show it.
func name(t Target) string {
	if t.Node == "" {
		return t.Addr
	}
	return "node " + short(t.Node)
}

// checkCall refuses what cannot be sent.
func checkCall(ctx context.Context, method string, in []byte) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(method) > 255:
		return errors.New("the name of the method is longer than 255 bytes")
	case len(in) > MaxRequest:
		return fmt.Errorf("%w: request of %d bytes, at most %d are allowed", ErrTooLarge, len(in), MaxRequest)
	}
	return nil
}

// roundTrip sends a request and waits for its answer or for the end of ctx.
func (p *Port) roundTrip(ctx context.Context, c *caller, method string, in []byte) (frame, error) {
	// The channel has room for the answer, so listen never waits for us.
	wait := make(chan reply, 1)
	c.mu.Lock()
	c.count++
	call := c.count
	c.wait = wait
	c.mu.Unlock()

	// The peer may take the request slowly or not at all: when ctx ends before
	// it is written, closing the connection ends the write.
	req := request{left: timeLeft(ctx), method: method}
	stop := context.AfterFunc(ctx, func() { c.l.Close() })
	err := c.l.send(requestFrame, call, req.head(), in)
	if !stop() || err != nil {
		c.l.Close()
		if ctx.Err() != nil {
			return frame{}, context.Cause(ctx)
		}
		return frame{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}

	select {
	case r := <-wait:
		if r.err != nil {
			return frame{}, fmt.Errorf("%w: %w", ErrBroken, r.err)
		}
		p.pool.put(c)
		return r.f, nil
	case <-ctx.Done():
		p.giveUp(c, call)
		return frame{}, context.Cause(ctx)
	}
}

// timeLeft is how long ctx still lasts; 0 stands for no end.
func timeLeft(ctx context.Context) time.Duration {
	left, ok := clock.Left(ctx)
	if !ok {
		return 0
	}
	return max(left, time.Microsecond)
}

// giveUp tells the other side that nobody waits for a call any more. The
// connection can be used again once the late answer has come; if none comes in
// time it is closed.
func (p *Port) giveUp(c *caller, call uint32) {
	c.mu.Lock()

	// The answer may have come just now: then there is nothing to cancel.
	if c.wait == nil {
		c.mu.Unlock()
		p.pool.put(c)
		return
	}
	c.wait, c.lost = nil, true
	c.mu.Unlock()

	// The cancel frame is sent in the background: the caller has waited enough.
	started := p.begin(func() {
		if c.l.send(cancelFrame, call) != nil {
			c.l.Close()
			return
		}

		clock.Wait(p.base, drainTime)
		c.mu.Lock()
		late := c.lost && c.count == call
		c.mu.Unlock()
		if late {
			c.l.Close()
		}
	})
	if !started {
		c.l.Close()
	}
}

// listen reads answers until the connection ends. It reads between calls too,
// so that a connection which the other side has closed is not used again.
func (p *Port) listen(c *caller) {
	r := bufio.NewReader(&timed{c: c.l.Conn})

	for {
		f, err := readFrame(r, MaxResponse)
		if err == nil && f.kind != responseFrame && f.kind != errorFrame {
			err = fmt.Errorf("%w: type %d where an answer is due", errFrame, f.kind)
		}

		c.mu.Lock()
		wait, lost := c.wait, c.lost
		if err == nil && (f.call != c.count || wait == nil && !lost) {
			err = fmt.Errorf("%w: answer to a call that was not made", errFrame)
		}

		c.wait, c.lost, c.dead = nil, false, err != nil
		c.mu.Unlock()

		if err != nil {
			c.l.Close()
			p.pool.drop(c)
			if errors.Is(err, io.EOF) {
				err = errors.New("the node closed the connection")
			}
		}

		// Hand the answer to who waits for it. If nobody does, the call was
		// given up, and the connection is free again.
		switch {
		case wait != nil:
			wait <- reply{f, err}
		case err == nil:
			p.pool.put(c)
		}

		if err != nil {
			return
		}
	}
}

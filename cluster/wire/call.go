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

// caller is the client's side of a connection. At most one call is in flight:
//
//	        roundTrip           the answer arrived
//	idle ──────────────▶ wait ──────────────────▶ idle
//	                      │ giveUp                 ▲
//	                      ▼     the answer arrived │
//	                     lost ─────────────────────┘
//	                      │ no answer within drainTime
//	                      ▼
//	                     dead    from any state when the connection ends
type caller struct {
	l     *link
	key   poolKey
	since time.Time // when it became idle; guarded by the pool

	mu    sync.Mutex // guards the fields below
	count uint32     // number of the latest call
	wait  chan reply // receives the answer to the call in flight; nil: nobody waits
	lost  bool       // the caller gave up, but the answer may still come
	dead  bool       // the connection has ended
}

// reply is what listen passes to the waiting roundTrip: a response or error frame, or why the
// connection ended.
type reply struct {
	f   frame
	err error
}

// drainTime is how long a connection waits for the answer to a call that was given up.
const drainTime = 2 * time.Second

// Call calls a method on a node and returns its output. The handler gets the deadline of ctx, and
// its own context ends when ctx does. An error wraps
//
//	ErrUnreachable  the call was not sent: it is safe to try again
//	ErrBroken       the connection broke: the call may or may not have taken effect
//	*RemoteError    the handler failed
//	the error of ctx, when the caller gave up
//
// It is safe for concurrent use. At most MaxCallsToNode calls to one node run at a time; others
// wait.
func (p *Port) Call(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.callOn(ctx, poolKey{Target: t, proto: Call}, false, method, in)
}

// CallAside is like Call, with separate slots: it never waits for other calls to end. It is for
// methods that a node answers at once.
func (p *Port) CallAside(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.callOn(ctx, poolKey{Target: t, proto: Call, aside: true}, false, method, in)
}

// CallAnew is like Call, on a new connection. Many kept connections may be broken without being
// noticed, because that shows only when one is used.
func (p *Port) CallAnew(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.callOn(ctx, poolKey{Target: t, proto: Call}, true, method, in)
}

// CallJoin is like Call, for methods of HandleJoin: from and to nodes that are in no cluster yet.
func (p *Port) CallJoin(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.callOn(ctx, poolKey{Target: t, proto: Join}, false, method, in)
}

// callOn takes a slot, gets or opens a connection, and makes one call on it. With
// newConnection it never uses an idle connection.
func (p *Port) callOn(ctx context.Context, k poolKey, newConnection bool, method string, in []byte) ([]byte, error) {
	fail := func(err error) error {
		return fmt.Errorf("call %s on %s: %w", method, targetName(k.Target), err)
	}

	if err := checkCall(ctx, method, in); err != nil {
		return nil, fail(err)
	}

	// Take one of the slots for calls to this node, and return it at the end.
	if err := p.pool.acquireSlot(ctx, k); err != nil {
		return nil, fail(err)
	}
	defer p.pool.releaseSlot(k)

	var c *caller
	if !newConnection {
		c = p.pool.takeIdle(k)
	}
	if c == nil {
		var err error
		if c, err = p.open(ctx, k); err != nil {
			return nil, fail(err)
		}
	}

	f, err := p.roundTrip(ctx, c, method, in)
	if err == nil && f.kind == errorFrame {
		err = p.kinds.decodeError(c.l.peer, f.body)
	}

	if err != nil {
		return nil, fail(err)
	}
	return f.body, nil
}

// open dials a node and starts to read its answers.
func (p *Port) open(ctx context.Context, k poolKey) (*caller, error) {
	l, err := p.dial(ctx, k.Target, k.proto)
	if err != nil {
		// If the caller gave up, its error wins.
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}

	c := &caller{l: l, key: k}
	if !p.startTask(func() { p.listen(c) }) {
		l.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// startTask starts a goroutine that Run waits for. It returns false and starts nothing once the port
// has ended.
func (p *Port) startTask(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return false
	}

	p.wg.Go(f)
	return true
}

// targetName formats a target for error messages.
func targetName(t Target) string {
	if t.Node == "" {
		return t.Addr
	}
	return "node " + shortID(t.Node)
}

// checkCall returns an error for a call that cannot be sent.
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
	// The channel is buffered, so listen never blocks on it.
	wait := make(chan reply, 1)
	c.mu.Lock()
	c.count++
	call := c.count
	c.wait = wait
	c.mu.Unlock()

	// The peer may read slowly or not at all. If ctx ends before the request is written, closing
	// the connection ends the write.
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
		p.pool.putBack(c)
		return r.f, nil
	case <-ctx.Done():
		p.giveUp(c, call)
		return frame{}, context.Cause(ctx)
	}
}

// timeLeft returns how long ctx lasts; 0: without end.
func timeLeft(ctx context.Context) time.Duration {
	left, ok := clock.Left(ctx)
	if !ok {
		return 0
	}
	return max(left, time.Microsecond)
}

// giveUp cancels a call on the other side. The connection is reusable once the late answer has
// arrived; if none arrives in time, it is closed.
func (p *Port) giveUp(c *caller, call uint32) {
	c.mu.Lock()

	// The answer came just now, so there is nothing to cancel.
	if c.wait == nil {
		c.mu.Unlock()
		p.pool.putBack(c)
		return
	}
	c.wait, c.lost = nil, true
	c.mu.Unlock()

	// Send the cancel frame in the background: the caller must not wait longer.
	started := p.startTask(func() {
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

// listen reads answers until the connection ends. It also reads between calls, to notice when the
// other side closes the connection.
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
			p.pool.removeDead(c)
			if errors.Is(err, io.EOF) {
				err = errors.New("the node closed the connection")
			}
		}

		// Pass the answer to the waiting call. If nobody waits, the call was given up, and the
		// connection is free again.
		switch {
		case wait != nil:
			wait <- reply{f, err}
		case err == nil:
			p.pool.putBack(c)
		}

		if err != nil {
			return
		}
	}
}

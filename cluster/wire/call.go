package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// caller is the side of a connection that asks. It has at most one call.
type caller struct {
	l     *link
	key   poolKey
	since time.Time // when it became idle; guarded by the pool

	mu    sync.Mutex // guards the fields below
	count uint32     // of calls
	wait  chan reply // of the call in flight; nil when nobody waits
	lost  bool       // the call in flight was given up; its answer is awaited
	dead  bool       // the connection has ended
}

type reply struct {
	f   frame
	err error
}

// drainTime is how long a given-up call may keep its connection.
const drainTime = 2 * time.Second

// Call asks a node. The deadline of ctx goes along and its end cancels the
// handler. An error wraps ErrUnreachable when the call has not begun,
// ErrBroken when nobody knows, *RemoteError when the handler failed, and the
// error of ctx when the caller has given up.
func (p *Port) Call(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{t, Call}, method, in)
}

// CallJoin is Call for methods of HandleJoin: from and to nodes that are in no
// cluster yet.
func (p *Port) CallJoin(ctx context.Context, t Target, method string, in []byte) ([]byte, error) {
	return p.ask(ctx, poolKey{t, Join}, method, in)
}

func (p *Port) ask(ctx context.Context, k poolKey, method string, in []byte) ([]byte, error) {
	fail := func(err error) error {
		return fmt.Errorf("call %s on %s: %w", method, name(k.Target), err)
	}
	if err := checkCall(ctx, method, in); err != nil {
		return nil, fail(err)
	}
	if err := p.pool.enter(ctx, k); err != nil {
		return nil, fail(err)
	}
	defer p.pool.leave(k)
	c := p.pool.get(k)
	if c == nil {
		l, err := p.dial(ctx, k.Target, k.proto)
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return nil, fail(err)
		}
		c = &caller{l: l, key: k}
		if !p.begin(func() { p.listen(c) }) {
			l.Close()
			return nil, fail(ErrClosed)
		}
	}
	f, err := p.roundTrip(ctx, c, method, in)
	if err == nil && f.kind == errorFrame {
		err = p.remote(c.l.peer, f.body)
	}
	if err != nil {
		return nil, fail(err)
	}
	return f.body, nil
}

// begin starts a goroutine of the port, unless the port has ended.
func (p *Port) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return false
	}
	p.wg.Go(f)
	return true
}

func name(t Target) string {
	if t.Node == "" {
		return t.Addr
	}
	return "node " + short(t.Node)
}

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

// remote makes the error that an errorFrame holds.
func (p *Port) remote(peer Peer, body []byte) error {
	kind, text, err := parseError(body)
	if err != nil {
		return err
	}
	return &RemoteError{Node: peer.Node, Text: text, Kind: p.kinds[kind]}
}

// roundTrip sends a request and waits for its answer or for the end of ctx.
func (p *Port) roundTrip(ctx context.Context, c *caller, method string, in []byte) (frame, error) {
	wait := make(chan reply, 1)
	c.mu.Lock()
	c.count++
	call := c.count
	c.wait = wait
	c.mu.Unlock()

	req := request{left: timeLeft(ctx), method: method}
	stop := context.AfterFunc(ctx, func() { c.l.Close() }) // a write can last
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
	d, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(d), time.Microsecond)
}

// giveUp tells the other side that nobody waits any more. The connection can
// be used again when the answer has come, else it is closed.
func (p *Port) giveUp(c *caller, call uint32) {
	c.mu.Lock()
	if c.wait == nil { // the answer came just now
		c.mu.Unlock()
		p.pool.put(c)
		return
	}
	c.wait, c.lost = nil, true
	c.mu.Unlock()
	started := p.begin(func() {
		if c.l.send(cancelFrame, call) != nil {
			c.l.Close()
			return
		}
		pause(p.base, drainTime)
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

// listen reads what comes on a connection until it ends. It reads all the
// time, so that a connection which the other side has closed is not used.
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

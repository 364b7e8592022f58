package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// server is the side of a connection that answers.
type server struct {
	p *Port
	l *link

	mu     sync.Mutex // guards the fields below
	call   uint32     // that is being answered
	cancel context.CancelFunc
	missed uint32 // the call whose cancel came last while it was not being answered
	busy   bool
}

// serveCalls answers the calls of a connection, one after the other.
func (p *Port) serveCalls(l *link, from map[string]Handler) {
	p.mu.Lock()
	handlers := maps.Clone(from)
	p.mu.Unlock()

	s := &server{p: p, l: l}
	ctx, cancel := context.WithCancel(p.base)
	defer cancel()

	// The reader ends when the connection does, or when this function closes
	// it: Run waits for it.
	requests := make(chan frame)
	p.wg.Go(func() {
		defer cancel()
		defer close(requests)
		s.read(ctx, requests)
	})
	defer l.Close()

	for f := range requests {
		if err := s.answer(ctx, f, handlers); err != nil {
			return
		}
	}
}

// read hands on requests and cancels calls, until the connection ends. It also
// reads while a handler runs, so that the handler learns at once that its
// caller has gone.
func (s *server) read(ctx context.Context, requests chan<- frame) {
	t := &timed{c: s.l.Conn}
	r := bufio.NewReader(t)

	for {
		// The caller closes a connection that it has not used for IdleTimeout;
		// the margin keeps this side from being first. A handler may take longer.
		t.wait = s.p.o.IdleTimeout + 10*time.Second
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && s.isBusy() {
				continue
			}
			return
		}

		// Once a frame has begun, its bytes must keep coming.
		t.wait = s.p.o.StallTimeout
		f, err := readFrame(r, MaxRequest+512)
		if err != nil {
			return
		}

		switch f.kind {
		case cancelFrame:
			s.stop(f.call)

		// Busy before it waits: a reader that timed out in between would end the connection.
		case requestFrame:
			s.begin()
			select {
			case requests <- f:
			case <-ctx.Done():
				return
			}

		// This side is sent nothing else: the other one speaks another protocol.
		default:
			return
		}
	}
}

// begin notes that a request waits for its handler or is being answered.
func (s *server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = true
}

func (s *server) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// stop cancels a call, unless it has ended already. One that has not begun ends
// as soon as it does.
func (s *server) stop(call uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil && s.call == call {
		s.cancel()
		return
	}
	s.missed = call
}

// start makes the context of a call, which ends with the caller's deadline or
// with its cancel frame. The returned function marks the call as answered.
func (s *server) start(ctx context.Context, f frame, left time.Duration) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if left > 0 {
		ctx, cancel = context.WithTimeout(ctx, left)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}

	// From here on a cancel frame of this number finds the call. The reader may have seen
	// one already: it reads on as soon as it has handed on the request.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call, s.cancel = f.call, cancel
	if s.missed == f.call {
		cancel()
	}

	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel, s.busy = nil, false
	}
}

// answer runs the handler of a request and sends what it returns. An error
// means that the connection is of no use any more.
func (s *server) answer(ctx context.Context, f frame, handlers map[string]Handler) error {
	req, err := parseRequest(f.body)
	if err != nil {
		return err
	}

	ctx, end := s.start(ctx, f, req.left)
	out, err := s.run(req.method, func() ([]byte, error) {
		h := handlers[req.method]
		if h == nil {
			return nil, fmt.Errorf("%w: %q", ErrNoMethod, req.method)
		}
		return h(ctx, s.l.peer, req.in)
	})

	end()

	// Refused here, where it can be said why: the caller would only see a broken frame.
	if err == nil && len(out) > MaxResponse {
		err = fmt.Errorf("%w: answer of %d bytes to %s, at most %d are allowed", ErrTooLarge, len(out), req.method, MaxResponse)
	}
	if err != nil {
		return s.fail(f.call, err)
	}
	return s.l.send(responseFrame, f.call, out)
}

// fail sends the error of a handler. A port that ends sends none: its handlers
// fail because of that, and a caller that sees the connection break asks another
// node, where it would take their error for an answer.
func (s *server) fail(call uint32, err error) error {
	if s.p.base.Err() != nil {
		return ErrClosed
	}
	return s.l.send(errorFrame, call, s.p.kinds.body(err))
}

// run calls a handler. What it panics with becomes an error: one bad request
// must not end the node.
func (s *server) run(method string, h func() ([]byte, error)) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.p.o.Log.Error("handler panicked", "method", method, "from", s.l.peer.Node, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			out, err = nil, fmt.Errorf("handler of %s failed", method)
		}
	}()
	return h()
}

// serveStream answers the one stream of a connection. The caller has as long
// to take the answer as it likes, if it takes some within each stall time.
func (p *Port) serveStream(l *link) {
	s := &server{p: p, l: l}
	t := &timed{c: l.Conn, wait: p.o.StallTimeout}
	r := bufio.NewReader(t)

	f, err := readFrame(r, MaxRequest+512)
	if err != nil || f.kind != requestFrame {
		return
	}
	req, err := parseRequest(f.body)
	if err != nil {
		return
	}

	p.mu.Lock()
	h := p.streams[req.method]
	p.mu.Unlock()

	ctx, end := s.start(p.base, f, req.left)
	defer end()

	// From here on the caller only sends a cancel, or hangs up. The reader ends
	// then, or when welcome closes the connection behind this function.
	t.wait = 0
	p.wg.Go(func() {
		defer end()
		for {
			if f, err := readFrame(r, 512); err != nil || f.kind == cancelFrame {
				return
			}
		}
	})

	beat := p.heartbeat(ctx, l, f.call)
	_, err = s.run(req.method, func() ([]byte, error) {
		if h == nil {
			return nil, fmt.Errorf("%w: %q", ErrNoMethod, req.method)
		}
		return nil, h(ctx, l.peer, req.in, &streamWriter{l: l, call: f.call})
	})
	beat()

	if err != nil {
		s.fail(f.call, err)
	} else {
		l.send(endFrame, f.call)
	}
	l.CloseWrite()

	// If the connection were closed now, the peer could lose what it has not
	// read yet. The reader above ends the wait when the peer hangs up.
	select {
	case <-ctx.Done():
	case <-time.After(p.o.HandshakeTimeout):
	}
}

// heartbeat sends empty chunks while a handler is silent, so that the reader
// can tell a slow one from a node that has stopped.
func (p *Port) heartbeat(ctx context.Context, l *link, call uint32) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	p.wg.Go(func() {
		defer close(done)
		// Three in the time of a stall: one may be late.
		for clock.Wait(ctx, l.stall/3) {
			if l.send(chunkFrame, call) != nil {
				return
			}
		}
	})

	return func() {
		cancel()
		<-done
	}
}

// streamWriter cuts what a handler writes into chunk frames.
type streamWriter struct {
	l    *link
	call uint32
}

func (w *streamWriter) Write(b []byte) (int, error) {
	n := 0
	for len(b) > 0 {
		piece := b[:min(len(b), maxChunk)]
		if err := w.l.send(chunkFrame, w.call, piece); err != nil {
			return n, err
		}
		n += len(piece)
		b = b[len(piece):]
	}
	return n, nil
}

var _ io.Writer = (*streamWriter)(nil)

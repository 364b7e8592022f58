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

// server is the answering side of a connection.
type server struct {
	p *Port
	l *link

	mu          sync.Mutex // guards the fields below
	call        uint32     // the call that is being answered
	cancel      context.CancelFunc
	earlyCancel uint32 // the last call whose cancel came while it was not being answered
	busy        bool
}

// serveCalls answers the calls of a connection one by one.
func (p *Port) serveCalls(l *link, from map[string]Handler) {
	p.mu.Lock()
	handlers := maps.Clone(from)
	p.mu.Unlock()

	s := &server{p: p, l: l}
	ctx, cancel := context.WithCancel(p.base)
	defer cancel()

	// The reader ends with the connection, or when this function closes it.
	requests := make(chan frame)
	p.wg.Go(func() {
		defer cancel()
		defer close(requests)
		s.readFrames(ctx, requests)
	})
	defer l.Close()

	for f := range requests {
		if err := s.answerCall(ctx, f, handlers); err != nil {
			return
		}
	}
}

// readFrames passes on requests and cancels calls, until the connection ends. It keeps reading
// while a handler runs, so that the handler learns at once that the caller has gone.
func (s *server) readFrames(ctx context.Context, requests chan<- frame) {
	t := &timed{c: s.l.Conn}
	r := bufio.NewReader(t)

	for {
		// The caller closes a connection that is unused for IdleTimeout. The margin lets the caller
		// be first. A handler may take longer.
		t.wait = s.p.o.IdleTimeout + 10*time.Second
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && s.isBusy() {
				continue
			}
			return
		}

		// Within a frame, its bytes must keep coming.
		t.wait = s.p.o.StallTimeout
		f, err := readFrame(r, MaxRequest+512)
		if err != nil {
			return
		}

		switch f.kind {
		case cancelFrame:
			s.cancelCall(f.call)

		// Set busy before waiting, or a read timeout could end the connection in between.
		case requestFrame:
			s.markBegun()
			select {
			case requests <- f:
			case <-ctx.Done():
				return
			}

		// No other frame is sent to this side: the peer does not follow the protocol.
		default:
			return
		}
	}
}

// markBegun marks that a request waits or is being answered.
func (s *server) markBegun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = true
}

func (s *server) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// cancelCall cancels a call that is being answered, or that has not begun yet.
func (s *server) cancelCall(call uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil && s.call == call {
		s.cancel()
		return
	}
	s.earlyCancel = call
}

// startCall returns the context of a call. It ends at the caller's deadline, or with a cancel frame.
// The returned function marks the call as answered.
func (s *server) startCall(ctx context.Context, f frame, left time.Duration) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if left > 0 {
		ctx, cancel = context.WithTimeout(ctx, left)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}

	// The reader may already have seen the cancel frame: it continues as soon as it has passed on
	// the request.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call, s.cancel = f.call, cancel
	if s.earlyCancel == f.call {
		cancel()
	}

	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel, s.busy = nil, false
	}
}

// answerCall runs the handler of a request and sends its result. An error means that the connection
// is unusable.
func (s *server) answerCall(ctx context.Context, f frame, handlers map[string]Handler) error {
	req, err := parseRequest(f.body)
	if err != nil {
		return err
	}

	ctx, end := s.startCall(ctx, f, req.left)
	out, err := s.runHandler(req.method, func() ([]byte, error) {
		h := handlers[req.method]
		if h == nil {
			return nil, fmt.Errorf("%w: %q", ErrNoMethod, req.method)
		}
		return h(ctx, s.l.peer, req.argument)
	})

	end()

	// Check the size here, where the caller can get a clear error.
	if err == nil && len(out) > MaxResponse {
		err = fmt.Errorf("%w: answer of %d bytes to %s, at most %d are allowed", ErrTooLarge, len(out), req.method, MaxResponse)
	}
	if err != nil {
		return s.sendError(f.call, err)
	}
	return s.l.send(responseFrame, f.call, out)
}

// sendError sends the error of a handler, unless the port has ended. In that case handlers fail
// because of the end. The caller then sees a broken connection and asks another node, instead of
// taking the error for an answer.
func (s *server) sendError(call uint32, err error) error {
	if s.p.base.Err() != nil {
		return ErrClosed
	}
	return s.l.send(errorFrame, call, s.p.kinds.encodeError(err))
}

// runHandler calls a handler. A panic becomes an error: one bad request must not end the node.
func (s *server) runHandler(method string, h func() ([]byte, error)) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.p.o.Log.Error("handler panicked", "method", method, "from", s.l.peer.Node, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			out, err = nil, fmt.Errorf("handler of %s failed", method)
		}
	}()
	return h()
}

// serveStream answers the one stream of a connection. The caller may take as long as it likes, if
// it takes some bytes within each stall time.
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

	ctx, end := s.startCall(p.base, f, req.left)
	defer end()

	// From now on the caller only sends a cancel frame or hangs up. The reader ends then, or when
	// welcome closes the connection.
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
	_, err = s.runHandler(req.method, func() ([]byte, error) {
		if h == nil {
			return nil, fmt.Errorf("%w: %q", ErrNoMethod, req.method)
		}
		return nil, h(ctx, l.peer, req.argument, &streamWriter{l: l, call: f.call})
	})
	beat()

	if err != nil {
		s.sendError(f.call, err)
	} else {
		l.send(endFrame, f.call)
	}
	l.CloseWrite()

	// Wait until the peer hangs up: closing now could lose bytes that it has not read yet.
	select {
	case <-ctx.Done():
	case <-time.After(p.o.HandshakeTimeout):
	}
}

// heartbeat sends empty chunks while a handler is silent, so that the reader can tell a slow
// handler from a stopped node.
func (p *Port) heartbeat(ctx context.Context, l *link, call uint32) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	p.wg.Go(func() {
		defer close(done)
		// Three per stall time, so that one may be late.
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

// streamWriter splits a handler's output into chunk frames.
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

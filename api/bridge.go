package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// heartbeat is how long an event stream may be silent before a comment goes
// out on it: proxies take a silent connection for a dead one after a minute.
const heartbeat = 15 * time.Second

// bridge serves an http.Handler on fasthttp. The handler runs in a goroutine
// of its own with a request that shares no memory with fasthttp's, so that one
// who outlives its client can never see the next request on that connection.
//
//	nothing flushed   the answer is sent whole when the handler returns
//	flushed           what was written goes out at each Flush, as a stream
//	silent for long   a POST that accepts an event stream gets one, with comments
//
// The serving goroutine and then the stream wait for the handler to return.
// panicked makes the failure of a panic of the handler.
func bridge(h http.Handler, panicked func(what string, p any) *failure, decorate func(context.Context, *call) context.Context) handler {
	return func(ctx context.Context, c *call) error {
		// The SDK looks for the local address in the context, as a server of net/http puts it there.
		ctx, cancel := context.WithCancelCause(decorate(context.WithValue(ctx, http.LocalAddrContextKey, c.rc.LocalAddr()), c))
		req, err := httpRequest(ctx, c)
		if err != nil {
			cancel(nil)
			return invalidParams("the request target is not a URL")
		}

		// The reply is what both goroutines share.
		r := &bridged{ctx: ctx, head: http.Header{}, committed: make(chan struct{}), parts: make(chan []byte), done: make(chan struct{})}

		// A handler gives its request up by this panic of net/http: that is no defect.
		go func() {
			defer close(r.done)
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					r.failed = panicked(c.path, p)
				} else if p != nil {
					r.failed = &failure{Status: 500, Code: codeUnexpected, Message: "The request was given up."}
				}
			}()
			h.ServeHTTP(r, req)
		}()

		// Whatever comes first decides how the answer goes out.
		silence := time.NewTimer(heartbeat)
		defer silence.Stop()
		select {
		case <-r.done:
		case <-r.committed:
		case <-silence.C:
			if acceptsEvents(req) {
				r.beginEvents()
			}
		}
		return r.answer(c, cancel)
	}
}

// httpRequest copies a call into a request of net/http.
func httpRequest(ctx context.Context, c *call) (*http.Request, error) {
	target := string(c.rc.Request.Header.RequestURI())
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}

	u.Path, u.RawPath = c.path, "" // the normalised path, by which access was decided
	body := c.requestBody()
	req := &http.Request{
		Method: c.method, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: string(c.rc.Host()),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: c.rc.RemoteAddr().String(),
	}

	// Copied: the strings of fasthttp belong to the next request once this one is over.
	for k, v := range c.rc.Request.Header.All() {
		req.Header.Add(string(k), string(v))
	}
	return req.WithContext(ctx), nil
}

func acceptsEvents(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.Contains(strings.Join(req.Header.Values("Accept"), ","), "text/event-stream")
}

// bridged is the http.ResponseWriter of a bridged handler.
type bridged struct {
	ctx       context.Context
	committed chan struct{} // closed when the head is final and parts follow
	parts     chan []byte   // what is flushed; received until done is closed
	done      chan struct{} // closed when the handler has returned
	failed    *failure      // a panic of the handler; read after done

	mu        sync.Mutex // guards the fields below
	head      http.Header
	sent      http.Header // the head as it was committed
	status    int
	buf       []byte
	streaming bool
	begun     bool // the stream was begun for the handler's silence, not by it
	alien     bool // then: what the handler writes is no event stream and is framed as one event at the end
}

// Header is what the handler sets before it writes.
func (r *bridged) Header() http.Header { return r.head }

// WriteHeader sets the status, once.
func (r *bridged) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeHeader(status)
}

func (r *bridged) writeHeader(status int) {
	// Informational heads have no place in an answer that is written once.
	if r.status != 0 || status < 200 {
		return
	}
	r.status = status

	// Where the stream was begun for it the status has gone out as 200 already.
	if r.begun && !strings.HasPrefix(r.head.Get("Content-Type"), "text/event-stream") {
		r.alien = true
	}
	if !r.streaming {
		r.sent = r.head.Clone()
	}
}

// Write keeps p until the next flush.
func (r *bridged) Write(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeHeader(http.StatusOK)
	r.buf = append(r.buf, p...)
	return len(p), nil
}

// Flush sends what was written; see FlushError.
func (r *bridged) Flush() { _ = r.FlushError() }

// FlushError sends what was written, and fails when the client has gone.
func (r *bridged) FlushError() error {
	// What is no event stream cannot go out in parts on one: it is framed at the end.
	r.mu.Lock()
	r.writeHeader(http.StatusOK)
	if r.alien {
		r.mu.Unlock()
		return nil
	}

	if !r.streaming {
		r.streaming = true
		close(r.committed)
	}

	// Given away under the lock, sent without it: the receiver may be slow.
	part := r.buf
	r.buf = nil
	r.mu.Unlock()

	if len(part) == 0 {
		return nil
	}
	select {
	case r.parts <- part:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// beginEvents makes an event stream of the answer of a handler that has not
// written anything yet.
func (r *bridged) beginEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streaming || r.status != 0 {
		return
	}
	r.streaming, r.begun = true, true
	r.sent = http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache, no-transform"}}
	close(r.committed)
}

// answer fills in the call's answer: whole, or as a stream.
func (r *bridged) answer(c *call, cancel context.CancelCauseFunc) error {
	// Also after a silence that made no stream of it: then the answer comes whole.
	select {
	case <-r.done:
	case <-r.committed:
	}

	r.mu.Lock()
	streaming := r.streaming
	r.mu.Unlock()

	// The handler has returned, so nobody else writes to the reply any more.
	if !streaming {
		defer cancel(nil)
		if r.failed != nil {
			return r.failed
		}

		// It gave up without an answer because the call had ended: that is what is told.
		if err := context.Cause(r.ctx); err != nil && r.status == 0 {
			return err
		}

		r.copyHead(c)
		c.body = r.buf
		return nil
	}

	r.copyHead(c)
	c.stream = func(w *bufio.Writer) error {
		defer cancel(nil)
		err := r.relay(w)
		if err != nil {
			cancel(errPeerGone)
		}

		// The handler may be sending still: its parts are dropped until it has returned.
		for {
			select {
			case <-r.parts:
			case <-r.done:
				return err
			}
		}
	}
	return nil
}

// copyHead copies status and headers as they were at the commit.
func (r *bridged) copyHead(c *call) {
	// A begun stream is 200 whatever the handler says later: its head is on the network.
	r.mu.Lock()
	defer r.mu.Unlock()
	c.status = max(r.status, http.StatusOK)
	if r.begun {
		c.status = http.StatusOK
	}

	// A header that is repeated goes out as one, with commas, as HTTP allows.
	for name, values := range r.sent {
		if name == "Content-Type" {
			c.mime = values[0]
			continue
		}
		c.setHeader(name, strings.Join(values, ", "))
	}
}

// relay writes parts as they come, comments in between when nothing comes, and
// the rest when the handler has returned.
func (r *bridged) relay(w *bufio.Writer) error {
	// The client waits since the request began: it gets a sign at once.
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()

	if r.begun {
		if err := put(w, []byte(": keep-alive\n\n")); err != nil {
			return err
		}
	}

	for {
		select {
		// A part is as good as a comment.
		case part := <-r.parts:
			if err := put(w, part); err != nil {
				return err
			}
			beat.Reset(heartbeat)

		case <-beat.C:
			if err := put(w, []byte(": keep-alive\n\n")); err != nil {
				return err
			}

		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-r.done:
			return r.rest(w)
		}
	}
}

// rest writes what the handler left in the buffer when it returned.
func (r *bridged) rest(w *bufio.Writer) error {
	if r.failed != nil {
		return errors.New("the handler panicked")
	}
	if !r.alien {
		return put(w, r.buf)
	}

	// One event has one line of data, and JSON means the same without line breaks.
	line := bytes.ReplaceAll(bytes.TrimSpace(r.buf), []byte("\n"), []byte(" "))
	return put(w, append(append([]byte("event: message\ndata: "), line...), "\n\n"...))
}

func put(w *bufio.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.Flush()
}

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
)

// bridge serves an http.Handler on fasthttp. The handler runs in a goroutine of its own with a
// copy of the request. So a handler that outlives its client never sees the next request on the
// connection.
//
// If the handler never flushes, the answer is sent whole when the handler returns. Otherwise each
// Flush sends what was written so far.
//
// The serving goroutine, and then the stream, wait for the handler to return. panicked makes the
// failure of a panic in the handler.
func bridge(h http.Handler, panicked func(what string, p any) *failure, decorate func(context.Context, *call) context.Context) handler {
	return func(ctx context.Context, c *call) error {
		// The MCP SDK reads the local address from the context, where net/http's server puts it.
		ctx, cancel := context.WithCancelCause(decorate(context.WithValue(ctx, http.LocalAddrContextKey, c.rc.LocalAddr()), c))
		req, err := httpRequest(ctx, c)
		if err != nil {
			cancel(nil)
			return invalidParams("the request target is not a URL")
		}

		// Both goroutines share r.
		r := &bridged{ctx: ctx, head: http.Header{}, committed: make(chan struct{}), parts: make(chan []byte), done: make(chan struct{})}

		// ErrAbortHandler is how a handler gives up a request: that is no defect.
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

		// The first of both decides how the answer is sent.
		select {
		case <-r.done:
		case <-r.committed:
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

	u.Path, u.RawPath = c.path, "" // the normalized path, on which access was decided
	body := c.requestBody()
	req := &http.Request{
		Method: c.method, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: string(c.rc.Host()),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: c.rc.RemoteAddr().String(),
	}

	// Copy the headers: fasthttp reuses its strings for the next request.
	for k, v := range c.rc.Request.Header.All() {
		req.Header.Add(string(k), string(v))
	}
	return req.WithContext(ctx), nil
}

// bridged is the http.ResponseWriter of a bridged handler. Only the handler uses head and buf
// until it commits them or returns.
type bridged struct {
	ctx       context.Context
	committed chan struct{} // closed once the head is final and parts follow
	parts     chan []byte   // flushed parts; received until done is closed
	done      chan struct{} // closed when the handler has returned
	failed    *failure      // a panic of the handler; read after done

	head      http.Header
	sent      http.Header // copy of head when the status was set
	status    int
	buf       []byte
	streaming bool
}

// Header returns the header map, which the handler fills in before it writes.
func (r *bridged) Header() http.Header { return r.head }

// WriteHeader sets the status, once.
func (r *bridged) WriteHeader(status int) {
	// Ignore informational heads (1xx).
	if r.status == 0 && status >= 200 {
		r.status, r.sent = status, r.head.Clone()
	}
}

// Write buffers p until the next flush.
func (r *bridged) Write(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	r.WriteHeader(http.StatusOK)
	r.buf = append(r.buf, p...)
	return len(p), nil
}

// Flush sends what was written; see FlushError.
func (r *bridged) Flush() { _ = r.FlushError() }

// FlushError sends what was written since the last flush. It fails if the client has gone.
func (r *bridged) FlushError() error {
	r.WriteHeader(http.StatusOK)
	if !r.streaming {
		r.streaming = true
		close(r.committed)
	}

	part := r.buf
	r.buf = nil
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

// answer sets the call's answer: whole, or as a stream.
func (r *bridged) answer(c *call, cancel context.CancelCauseFunc) error {
	select {
	case <-r.committed:
	default: // the handler has returned
		defer cancel(nil)
		if r.failed != nil {
			return r.failed
		}

		// If the handler gave up because the call ended, report that.
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

		// Drop further parts until the handler has returned.
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

// copyHead copies status and headers.
func (r *bridged) copyHead(c *call) {
	// Join repeated headers with commas, as HTTP allows.
	c.status = max(r.status, http.StatusOK)
	for name, values := range r.sent {
		if name == "Content-Type" {
			c.mime = values[0]
			continue
		}
		c.setHeader(name, strings.Join(values, ", "))
	}
}

// relay writes parts as they come, and the rest when the handler has returned.
func (r *bridged) relay(w *bufio.Writer) error {
	for {
		select {
		case part := <-r.parts:
			if err := put(w, part); err != nil {
				return err
			}
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-r.done:
			if r.failed != nil {
				return errors.New("the handler panicked")
			}
			return put(w, r.buf)
		}
	}
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

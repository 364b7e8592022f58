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
// Flush sends what the handler wrote since the previous one.
//
// The goroutine that serves the request, and then the stream, wait for the handler to return.
// panicked turns a panic of the handler into a failure. decorate adds values to the context of the
// handler's request.
func bridge(h http.Handler, panicked func(request string, p any) *failure, decorate func(context.Context, *call) context.Context) handler {
	return func(ctx context.Context, c *call) error {
		// The MCP SDK reads the local address from the context, where net/http's server puts it.
		ctx, cancel := context.WithCancelCause(decorate(context.WithValue(ctx, http.LocalAddrContextKey, c.rc.LocalAddr()), c))
		req, err := httpRequest(ctx, c)
		if err != nil {
			cancel(nil)
			return invalidParams("the request target is not a URL")
		}

		// This goroutine and the handler's share r.
		r := &bridged{ctx: ctx, head: http.Header{}, committed: make(chan struct{}), parts: make(chan []byte), done: make(chan struct{})}

		// A handler panics with ErrAbortHandler to give up a request. Do not report that as a defect.
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

		// If the handler returns without a Flush, its answer is sent whole, otherwise as a stream.
		select {
		case <-r.done:
		case <-r.committed:
		}
		return r.answer(c, cancel)
	}
}

// httpRequest copies a call into a request of net/http with ctx. It fails if the target is no URL.
func httpRequest(ctx context.Context, c *call) (*http.Request, error) {
	target := string(c.rc.Request.Header.RequestURI())
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}

	u.Path, u.RawPath = c.path, "" // the normalized path, for which the access was checked
	body := c.requestBody()
	req := &http.Request{
		Method: c.method, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: string(c.rc.Host()),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: c.rc.RemoteAddr().String(),
	}

	// Copy the headers, because fasthttp reuses their memory for the next request.
	for k, v := range c.rc.Request.Header.All() {
		req.Header.Add(string(k), string(v))
	}
	return req.WithContext(ctx), nil
}

// bridged is the http.ResponseWriter of a bridged handler. Only the handler uses head and buf
// until it commits them or returns.
type bridged struct {
	ctx       context.Context
	committed chan struct{} // closed by the first Flush: the head is final and parts follow
	parts     chan []byte   // flushed parts; received until done is closed
	done      chan struct{} // closed when the handler has returned
	failed    *failure      // from a panic of the handler; set before done is closed

	head      http.Header // the handler fills it in
	finalHead http.Header // copy of head when the status was set
	status    int         // 0: not set yet
	buf       []byte      // written since the last Flush
	streaming bool        // committed is closed
}

// Header returns the header map, which the handler fills in before it writes.
func (r *bridged) Header() http.Header { return r.head }

// WriteHeader sets the status and copies the headers, once.
func (r *bridged) WriteHeader(status int) {
	// Ignore informational statuses (1xx): the answer's own status follows.
	if r.status == 0 && status >= 200 {
		r.status, r.finalHead = status, r.head.Clone()
	}
}

// Write buffers p until the next Flush. It fails if the call has ended.
func (r *bridged) Write(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	r.WriteHeader(http.StatusOK)
	r.buf = append(r.buf, p...)
	return len(p), nil
}

// Flush is FlushError without its error.
func (r *bridged) Flush() { _ = r.FlushError() }

// FlushError sends what was written since the last Flush. It fails if the call has ended.
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

// answer sets the call's answer: a stream if the handler has flushed, otherwise the whole body. It
// returns the failure or the reason if the handler panicked or gave up.
func (r *bridged) answer(c *call, cancel context.CancelCauseFunc) error {
	select {
	case <-r.committed:
	default: // the handler has returned
		defer cancel(nil)
		if r.failed != nil {
			return r.failed
		}

		// If the handler answered nothing because the call ended, return why it ended.
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

		// Receive and drop further parts until the handler has returned.
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

// copyHead copies the handler's status and headers into the answer of c.
func (r *bridged) copyHead(c *call) {
	// Join repeated headers with commas, as HTTP allows.
	c.status = max(r.status, http.StatusOK)
	for name, values := range r.finalHead {
		if name == "Content-Type" {
			c.mime = values[0]
			continue
		}
		c.setHeader(name, strings.Join(values, ", "))
	}
}

// relay writes parts as they come, and the last one when the handler has returned. It fails if the
// handler panics or the call ends.
func (r *bridged) relay(w *bufio.Writer) error {
	for {
		select {
		case part := <-r.parts:
			if err := writeAndFlush(w, part); err != nil {
				return err
			}
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-r.done:
			if r.failed != nil {
				return errors.New("the handler panicked")
			}
			return writeAndFlush(w, r.buf)
		}
	}
}

func writeAndFlush(w *bufio.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.Flush()
}

package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/clock"
)

// fail makes f the answer.
func (c *call) fail(f *failure) {
	c.status, c.mime, c.body, c.stream = f.Status, mimeJSON, f.body(), nil
	if f.RetryAfter > 0 || f.Status == 429 {
		c.setHeader("Retry-After", f.retryAfter())
	}
	if f.Allow != "" {
		c.setHeader("Allow", f.Allow)
	}
}

// head writes status and headers.
func (c *call) head() {
	h := &c.rc.Response.Header
	c.rc.SetStatusCode(c.status)
	if c.mime != "" {
		c.rc.SetContentType(c.mime)
	}

	// No browser may run a file of a repository as a script.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(headerRequest, c.id)

	if c.mime == mimeJSON {
		h.Set("Cache-Control", "no-store")
	}

	// Set the handler's headers last, so that they can override the defaults.
	for _, kv := range c.header {
		h.Set(kv[0], kv[1])
	}
}

// largestPooled limits the buffers that are kept for further answers, in bytes.
const largestPooled = 1 << 20

// write gives the whole answer to fasthttp, which sends it after the handler.
func (c *call) write(s *Server) {
	// Do not keep a large buffer, which would never be freed.
	c.head()
	if c.pooled != nil && cap(c.body) <= largestPooled {
		c.rc.Response.SetBody(c.body) // copies
		*c.pooled = c.body[:0]
		s.buffers.pool.Put(c.pooled)
		return
	}
	c.rc.Response.SetBodyRaw(c.body)
}

// writeSlowly gives a large answer to fasthttp, which sends it after the handler. The call counts
// as running, with its memory, until the answer is sent or given up. It is given up if the client
// takes no byte for stallTimeout or is slower than slowestBytes.
func (c *call) writeSlowly(s *Server, end func()) {
	c.head()
	now := clock.Now()
	if err := c.rc.SetWriteDeadline(now.Add(stallTimeout)); err != nil {
		s.log.Debug("connection", "detail", err)
	}
	size := len(c.body)
	c.rc.SetBodyStream(&slowBody{
		conn: c.rc.Conn(), left: c.body, end: end, until: now.Add(writeTimeout + time.Duration(size/slowestBytes)*time.Second),
	}, size)
}

// Limits for clients that read large answers.
const (
	stallTimeout = 20 * time.Second // without a byte taken
	slowestBytes = 16 << 10         // bytes a second, over the whole answer
)

// slowBody is a large answer while it is sent. Each part moves the connection's write deadline.
// fasthttp closes it when the answer is sent or given up.
type slowBody struct {
	conn  net.Conn
	left  []byte
	until time.Time
	end   func()
}

// Read returns the next part.
func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}

	// Each part gets stallTimeout, but all together end at until.
	deadline := clock.In(stallTimeout)
	if deadline.After(b.until) {
		deadline = b.until
	}
	if err := b.conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}

	// fasthttp writes the part after Read returns, so the deadline is in place.
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close gives back the memory. It may be called more than once.
func (b *slowBody) Close() error {
	if b.end != nil {
		b.end()
		b.left, b.end = nil, nil
	}
	return nil
}

// writeStream gives a streamed answer to fasthttp. It calls end when the stream is over, sent or
// not. Only then may the connection serve the next request.
func (c *call) writeStream(s *Server, end func()) {
	c.head()
	c.rc.Response.ImmediateHeaderFlush = true

	conn, stream := c.rc.Conn(), c.stream
	// Replace the server's deadline for the whole answer: deadlineWriter moves it with each part.
	if err := c.rc.SetWriteDeadline(clock.In(writeTimeout)); err != nil {
		s.log.Debug("connection", "detail", err)
	}

	name := c.path

	// fasthttp calls this after the head and does not recover panics.
	c.rc.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer end()
		defer func() {
			if p := recover(); p != nil {
				s.panicked(name, p)
			}
		}()
		if err := stream(bufio.NewWriterSize(deadlineWriter{w, conn}, 4096)); err != nil {
			s.log.Debug("stream ended early", "path", name, "error", err)
		}
	})
}

// deadlineWriter moves the connection's write deadline with each part, and sends the part at
// once.
type deadlineWriter struct {
	w    *bufio.Writer
	conn net.Conn
}

// Write sends p.
func (d deadlineWriter) Write(p []byte) (int, error) {
	if err := d.conn.SetWriteDeadline(clock.In(writeTimeout)); err != nil {
		return 0, err
	}
	n, err := d.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, d.w.Flush()
}

// panicked logs a panic with its stack and returns the failure to send.
func (s *Server) panicked(what string, p any) *failure {
	s.meter.panics.Inc()
	s.log.Error("panic while answering", "request", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &failure{Status: 500, Code: codeUnexpected, Message: "Unexpected error: the node's log has the details.", cause: fmt.Errorf("panic: %v", p)}
}

// refuse answers bytes that fasthttp could not parse as a request.
func (s *Server) refuse(rc *fasthttp.RequestCtx, err error) {
	// There is no request, so no other step runs. Count it and answer as usual.
	c := &call{rc: rc}

	f := malformed()
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		f = &failure{Status: 431, Code: codeHeaderTooLarge, Message: "The head of the request is larger than " + strconv.Itoa(maxHeader) + " bytes."}
	case errors.As(err, &timeout) && timeout.Timeout():
		f = lateRequest()
	}

	// The beginning of a next request on this connection is unknown, so close it.
	s.meter.done("malformed", "", f.Status, 0)
	c.fail(f)
	c.head()
	rc.Response.SetBodyRaw(c.body)
	rc.SetConnectionClose()
}

func tooLarge(most int) *failure {
	return &failure{Status: 413, Code: codeTooLarge, Message: "The request body is larger than " + strconv.Itoa(most) + " bytes."}
}

// expect answers `Expect: 100-continue`, before the body arrives.
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	// Refuse a body that the head announces as too large, so that the client need not send it.
	if announcedTooLarge(rc) == 0 {
		return fasthttp.StatusContinue
	}
	c := &call{rc: rc}
	c.fail(tooLarge(largestBody))
	c.head()
	rc.Response.SetBodyRaw(c.body)
	return 413
}

// drain reads some of a refused body, because closing a connection with unread bytes makes the
// client's system drop the answer. It gives up on a client that pauses or sends too much. It
// reports whether it reached the end of the body.
func drain(conn net.Conn, body io.Reader, length int) bool {
	// Enough for the largest body sent by mistake, and for the pauses of a slow network.
	const most, patience = 32 << 20, 250 * time.Millisecond
	if length < 0 || length > most {
		length = most
	}

	buf := make([]byte, 4<<10)
	until := clock.In(5 * time.Second)

	// Stop at the length, the time, or a pause.
	for length > 0 && clock.Now().Before(until) {
		if conn.SetReadDeadline(clock.In(patience)) != nil {
			return false
		}
		n, err := body.Read(buf)
		length -= n
		if err != nil {
			return err == io.EOF
		}
	}
	return false
}

var _ io.Writer = deadlineWriter{}

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

// fail replaces the call's answer by the failure f. Headers that are already set stay.
func (c *call) fail(f *failure) {
	c.status, c.mime, c.body, c.stream = f.Status, mimeJSON, f.body(), nil
	if f.RetryAfter > 0 || f.Status == 429 {
		c.setHeader("Retry-After", f.retryAfter())
	}
	if f.Allow != "" {
		c.setHeader("Allow", f.Allow)
	}
}

// writeHead writes the status and the headers of the answer.
func (c *call) writeHead() {
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

// largestPooled is the largest buffer, in bytes, that is kept for later answers.
const largestPooled = 1 << 20

// write gives the whole answer to fasthttp, which sends it after the handler. It returns a pooled
// buffer to the pool of s.
func (c *call) write(s *Server) {
	// Do not pool a large buffer, because it would never be freed.
	c.writeHead()
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
	c.writeHead()
	now := clock.Now()
	if err := c.rc.SetWriteDeadline(now.Add(stallTimeout)); err != nil {
		s.log.Debug("connection", "detail", err)
	}
	size := len(c.body)
	c.rc.SetBodyStream(&slowBody{
		conn: c.rc.Conn(), left: c.body, end: end, deadline: now.Add(writeTimeout + time.Duration(size/slowestBytes)*time.Second),
	}, size)
}

// Limits for clients that read large answers.
const (
	stallTimeout = 20 * time.Second // how long a client may take no byte
	slowestBytes = 16 << 10         // bytes a second, averaged over the whole answer
)

// slowBody is a large answer while it is sent. Each part moves the connection's write deadline.
// fasthttp closes it when the answer is sent or given up.
type slowBody struct {
	conn     net.Conn
	left     []byte    // not yet sent
	deadline time.Time // of the whole answer
	end      func()    // called once, when the answer is sent or given up; then nil
}

// Read returns the next part, and extends the connection's write deadline for it.
func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}

	// Each part may take stallTimeout, but none may be sent after the deadline of the answer.
	partDeadline := clock.In(stallTimeout)
	if partDeadline.After(b.deadline) {
		partDeadline = b.deadline
	}
	if err := b.conn.SetWriteDeadline(partDeadline); err != nil {
		return 0, err
	}

	// fasthttp writes the part after Read returns, so the deadline is in place.
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close ends the call and frees the answer. It may be called more than once.
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
	c.writeHead()
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

// deadlineWriter extends the connection's write deadline for each part, and sends the part at
// once.
type deadlineWriter struct {
	w    *bufio.Writer
	conn net.Conn
}

// Write sends p within writeTimeout.
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

// panicked counts and logs a panic p with its stack, and returns the failure to send.
func (s *Server) panicked(request string, p any) *failure {
	s.meter.panics.Inc()
	s.log.Error("panic while answering", "request", request, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &failure{Status: 500, Code: codeUnexpected, Message: "Unexpected error: the node's log has the details.", cause: fmt.Errorf("panic: %v", p)}
}

// refuse answers bytes that fasthttp could not parse as a request.
func (s *Server) refuse(rc *fasthttp.RequestCtx, err error) {
	// No handler runs, so count the request and answer it here.
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
	s.meter.observe("malformed", "", f.Status, 0)
	c.fail(f)
	c.writeHead()
	rc.Response.SetBodyRaw(c.body)
	rc.SetConnectionClose()
}

func tooLarge(limit int) *failure {
	return &failure{Status: 413, Code: codeTooLarge, Message: "The request body is larger than " + strconv.Itoa(limit) + " bytes."}
}

// expect answers `Expect: 100-continue`, before the body arrives: with the status 100, or with 413
// and a failure.
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	// Refuse a body that the head announces as too large, so that the client need not send it.
	if announcedTooLarge(rc) == 0 {
		return fasthttp.StatusContinue
	}
	c := &call{rc: rc}
	c.fail(tooLarge(largestBody))
	c.writeHead()
	rc.Response.SetBodyRaw(c.body)
	return 413
}

// drain reads the rest of a refused body, because closing a connection with unread bytes makes the
// client's system drop the answer. length is the announced length; negative if unknown. drain
// stops if the client pauses or sends too much. It reports whether the body's end was read.
func drain(conn net.Conn, body io.Reader, length int) bool {
	// Clients send bodies of up to maxDrained bytes by mistake. A slow network pauses for less than
	// maxPause.
	const maxDrained, maxPause = 32 << 20, 250 * time.Millisecond
	if length < 0 || length > maxDrained {
		length = maxDrained
	}

	buf := make([]byte, 4<<10)
	until := clock.In(5 * time.Second)

	// Stop after length bytes, after five seconds, or at a pause.
	for length > 0 && clock.Now().Before(until) {
		if conn.SetReadDeadline(clock.In(maxPause)) != nil {
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

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

	// For every answer: no browser shall take a file of a repository for a script.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(headerRequest, c.id)

	if c.mime == mimeJSON {
		h.Set("Cache-Control", "no-store")
	}

	// After the usual ones, so that a handler may say otherwise.
	for _, kv := range c.header {
		h.Set(kv[0], kv[1])
	}
}

// largestPooled bounds the memory that a buffer may keep between answers.
const largestPooled = 1 << 20

// write hands a whole answer to fasthttp, which sends it after the handler.
func (c *call) write(s *Server) {
	// A large buffer is not kept: one answer of many megabytes would stay for ever.
	c.head()
	if c.pooled != nil && cap(c.body) <= largestPooled {
		c.rc.Response.SetBody(c.body) // copies
		*c.pooled = c.body[:0]
		s.buffers.pool.Put(c.pooled)
		return
	}
	c.rc.Response.SetBodyRaw(c.body)
}

// writeSlowly hands a large answer to fasthttp, which sends it after the
// handler. It counts as under way, with the memory that it holds, until it is
// sent or given up: a client that takes nothing for a while, or is slower than
// a modem, is left.
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

// The patience with readers of large answers.
const (
	stallTimeout = 20 * time.Second // without a byte taken
	slowestBytes = 16 << 10         // a second, over the whole answer
)

// slowBody is a large answer being sent: each part moves the deadline of the
// connection. It is closed when the answer is sent or given up.
type slowBody struct {
	conn  net.Conn
	left  []byte
	until time.Time
	end   func()
}

// Read takes the next part.
func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}

	// Each part has a time of its own, all together the rest of theirs.
	deadline := clock.In(stallTimeout)
	if deadline.After(b.until) {
		deadline = b.until
	}
	if err := b.conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}

	// The deadline stands before the part is sent: the server writes after this returns.
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close gives the memory back; it is called once at least.
func (b *slowBody) Close() error {
	// The server may close it twice, and the budget is given back once.
	if b.end != nil {
		b.end()
		b.left, b.end = nil, nil
	}
	return nil
}

// writeStream hands a streamed answer to fasthttp. end is called when the
// stream is over, sent or not; only then may the connection be used for the
// next request.
func (c *call) writeStream(s *Server, end func()) {
	c.head()
	c.rc.Response.ImmediateHeaderFlush = true

	conn, stream := c.rc.Conn(), c.stream
	// The deadline moves with each part (deadlineWriter), so the one that the
	// server would set for the whole answer is replaced here.
	if err := c.rc.SetWriteDeadline(clock.In(writeTimeout)); err != nil {
		s.log.Debug("connection", "detail", err)
	}

	name := c.path

	// fasthttp calls this after the head: nobody else recovers a panic here.
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

// deadlineWriter moves the write deadline of a connection with each part that
// is written, and sends it at once.
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

// panicked logs a panic with its stack and makes the failure that is sent.
func (s *Server) panicked(what string, p any) *failure {
	s.meter.panics.Inc()
	s.log.Error("panic while answering", "request", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &failure{Status: 500, Code: codeUnexpected, Message: "Unexpected error: the node's log has the details.", cause: fmt.Errorf("panic: %v", p)}
}

// refuse answers what fasthttp could not read as a request.
func (s *Server) refuse(rc *fasthttp.RequestCtx, err error) {
	// There is no request to route, so none of the other steps run: the metric and the
	// error body are as everywhere.
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

	// Where the next request begins on this connection nobody can tell.
	s.meter.done("malformed", "", f.Status, 0)
	c.fail(f)
	c.head()
	rc.Response.SetBodyRaw(c.body)
	rc.SetConnectionClose()
}

func tooLarge(most int) *failure {
	return &failure{Status: 413, Code: codeTooLarge, Message: "The request body is larger than " + strconv.Itoa(most) + " bytes."}
}

// expect answers `Expect: 100-continue` before the body is sent.
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	// The head alone decides: a client that asks first need not send what is refused.
	if announcedTooLarge(rc) == 0 {
		return fasthttp.StatusContinue
	}
	c := &call{rc: rc}
	c.fail(tooLarge(largestBody))
	c.head()
	rc.Response.SetBodyRaw(c.body)
	return 413
}

// drain takes some of a body that is refused off the connection, because
// closing one with unread bytes makes the client's system throw the answer
// away. It gives up on a client that pauses or sends without end, and reports
// whether it reached the end of the body.
func drain(conn net.Conn, body io.Reader, length int) bool {
	// Enough for the largest body that somebody sends by mistake, and the pause of a slow network.
	const most, patience = 32 << 20, 250 * time.Millisecond
	if length < 0 || length > most {
		length = most
	}

	buf := make([]byte, 4<<10)
	until := clock.In(5 * time.Second)

	// Whichever comes first ends it: the length, the time, or a pause.
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

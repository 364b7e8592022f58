package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
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
	if f.Status == 401 {
		c.setHeader("WWW-Authenticate", `Bearer realm="shoal"`)
	}
}

// head writes status and headers.
func (c *call) head() {
	h := &c.rc.Response.Header
	c.rc.SetStatusCode(c.status)
	if c.mime != "" {
		c.rc.SetContentType(c.mime)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if c.mime == mimeJSON {
		h.Set("Cache-Control", "no-store")
	}
	for _, kv := range c.header {
		h.Set(kv[0], kv[1])
	}
}

// buffers keeps the memory of answers for the next ones.
type buffers struct{ pool sync.Pool }

// largestPooled bounds the memory that a buffer may keep between answers.
const largestPooled = 1 << 20

// write hands a whole answer to fasthttp, which sends it after the handler.
func (c *call) write(s *Server) {
	c.head()
	if c.pooled != nil && cap(c.body) <= largestPooled {
		c.rc.Response.SetBody(c.body) // copies
		*c.pooled = c.body[:0]
		s.routes.buffers.pool.Put(c.pooled)
		return
	}
	c.rc.Response.SetBodyRaw(c.body)
}

// buffer is an empty slice for an answer, reused where possible.
func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, 64<<10)
	return &p
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
	if err := c.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		s.log.Debug("connection", "detail", err)
	}
	name := c.path
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
	if err := d.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
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
	c := &call{rc: rc}
	f := &failure{Status: 400, Code: codeMalformed, Message: "The request is not well-formed HTTP/1.1."}
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = tooLarge()
		drain(rc.Conn(), rc.Request.Header.ContentLength())
	case errors.As(err, &small):
		f = &failure{Status: 431, Code: codeHeaderTooLarge, Message: "The head of the request is larger than " + strconv.Itoa(maxHeader) + " bytes."}
	case errors.As(err, &timeout) && timeout.Timeout():
		f = &failure{Status: 408, Code: codeRequestTimeout, Message: "The request did not arrive within " + readTimeout.String() + "."}
	}
	s.meter.done("malformed", "", f.Status, 0)
	c.fail(f)
	c.head()
	rc.Response.SetBodyRaw(c.body)
	rc.SetConnectionClose()
}

func tooLarge() *failure {
	return &failure{Status: 413, Code: codeTooLarge, Message: "The request body is larger than " + strconv.Itoa(maxBody) + " bytes."}
}

// expect answers `Expect: 100-continue` before the body is sent.
func (s *Server) expect(rc *fasthttp.RequestCtx) int {
	if n := rc.Request.Header.ContentLength(); n <= maxBody {
		return fasthttp.StatusContinue
	}
	c := &call{rc: rc}
	c.fail(tooLarge())
	c.head()
	rc.Response.SetBodyRaw(c.body)
	return 413
}

// drain takes some of a body that is refused off the connection, because
// closing one with unread bytes makes the client's system throw the answer
// away. It gives up on a client that pauses or sends without end.
func drain(conn net.Conn, length int) {
	const most, patience = 32 << 20, 250 * time.Millisecond
	if length < 0 || length > most {
		length = most
	}
	buf := make([]byte, 32<<10)
	until := time.Now().Add(5 * time.Second)
	for length > 0 && time.Now().Before(until) {
		if conn.SetReadDeadline(time.Now().Add(patience)) != nil {
			return
		}
		n, err := conn.Read(buf)
		length -= n
		if err != nil {
			return
		}
	}
}

var _ io.Writer = deadlineWriter{}

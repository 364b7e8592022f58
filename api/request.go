package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/clock"
)

// onHead is called when the head of a request has arrived. If the announced body is too large or the
// head is ambiguous, it removes the body, sets an internal header for the handler, and lets the
// connection close after the answer. The first byte of a body must come within opt.patience.
func (s *Server) onHead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	h.Del(headerBodyLength)
	h.Del(headerAmbiguous)
	if isAmbiguous(h.RawHeaders()) {
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Set(headerAmbiguous, "yes")
	}
	if n := h.ContentLength(); n > largestBody {
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Set(headerBodyLength, strconv.Itoa(n))
	}
	return fasthttp.RequestConfig{ReadTimeout: s.opt.patience}
}

// Internal headers of a request. onHead deletes them from what a client sends.
const (
	headerBodyLength = "announced length" // length of a body that is too large
	headerAmbiguous  = "unclear head"     // set if the head is ambiguous
)

// isAmbiguous reports whether two programs could read the fields of a head differently. A proxy and
// the node must see the same request. RFC 9112 allows refusing all these heads.
func isAmbiguous(fields []byte) bool {
	lengthFields := 0 // fields that tell the length of the body
	for line := range bytes.Lines(fields) {
		text, hasCRLF := bytes.CutSuffix(line, []byte("\r\n"))
		isFolded := len(text) > 0 && (text[0] == ' ' || text[0] == '\t') // it continues the line before
		if !hasCRLF || isFolded || bytes.IndexByte(text, '\r') >= 0 {
			return true
		}

		// Compare the lengths first: that is faster, and excludes nearly all fields.
		name, value, _ := bytes.Cut(text, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && strings.EqualFold(string(name), "Content-Length"):
			lengthFields++
		case len(name) == len("Transfer-Encoding") && strings.EqualFold(string(name), "Transfer-Encoding"):
			lengthFields++
			if !strings.EqualFold(string(bytes.Trim(value, " \t")), "chunked") {
				return true
			}
		}
	}
	return lengthFields > 1
}

// announcedTooLarge returns the announced length of a body that is too large; 0 otherwise.
func announcedTooLarge(rc *fasthttp.RequestCtx) int {
	n, _ := strconv.Atoi(string(rc.Request.Header.Peek(headerBodyLength))) // without the header: 0
	return n
}

// readBody reads a body of at most limit bytes into c.received. The buffer grows with the bytes that
// arrive, whatever length was announced, and the request's lease with it. readBody refuses a body
// that is slower than bodyRate.
func (s *Server) readBody(c *call, limit int) *failure {
	length := c.rc.Request.Header.ContentLength() // negative if unknown
	if announcedTooLarge(c.rc) > 0 || length > limit {
		return tooLarge(limit)
	}

	stream := c.rc.RequestBodyStream()
	if stream == nil || !c.hasBody() {
		return nil
	}

	// Start with a small buffer: a client may announce a megabyte and send nothing.
	began := clock.Now()
	size := firstBody // of the buffer
	if length >= 0 {
		size = min(size, length)
	}
	for {
		// A full buffer doubles, so it is at most twice as large as what has arrived.
		if f := c.lease.resize(int64(size)); f != nil {
			return f
		}
		c.received = append(make([]byte, 0, size), c.received...)

		for len(c.received) < size {
			if err := c.rc.Conn().SetReadDeadline(s.bodyDeadline(began, len(c.received))); err != nil {
				return incompleteBody(err)
			}
			n, err := stream.Read(c.received[len(c.received):size])
			c.received = c.received[:len(c.received)+n]
			switch {
			case err == io.EOF && len(c.received) < length:
				return incompleteBody(io.ErrUnexpectedEOF)
			case err == io.EOF:
				return nil
			case err != nil:
				return incompleteBody(err)
			}
		}

		if len(c.received) == length {
			return nil
		}
		if len(c.received) > limit {
			return tooLarge(limit)
		}
		size = min(2*size, limit+1) // one byte above the limit shows that the body is too large
	}
}

// bodyDeadline returns when the byte after the first n must have arrived.
func (s *Server) bodyDeadline(began time.Time, n int) time.Time {
	allowed := s.opt.patience + time.Duration(n)*time.Second/bodyRate
	return began.Add(min(allowed, readTimeout))
}

// hasBody reports whether the server reads the request's body. It ignores bodies with other methods.
func (c *call) hasBody() bool {
	return c.method == fasthttp.MethodPost || c.method == fasthttp.MethodPatch
}

// incompleteBody returns the failure for an error in reading a body.
func incompleteBody(err error) *failure {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return lateRequest()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return &failure{Status: statusClientGone, Code: codeClientGone, Message: "The client closed the connection.", cause: err}
	}
	return malformed()
}

func lateRequest() *failure {
	return &failure{Status: 408, Code: codeRequestTimeout, Message: "The request came too slowly: send the head and the body without a pause, and the body at 16 KiB a second at least."}
}

func malformed() *failure {
	return &failure{Status: 400, Code: codeMalformed, Message: "The request is not well-formed HTTP/1.1. Each line of its head must begin with a name and end with CR LF. One field says how long the body is."}
}

// dropBody reads the rest of a refused body. If the client does not send all of it soon, the
// connection closes after the answer.
func (c *call) dropBody() {
	// onHead has hidden a body that is too large from fasthttp, so read from the connection itself.
	if n := announcedTooLarge(c.rc); n > 0 {
		drain(c.rc.Conn(), c.rc.Conn(), n)
		return
	}
	stream := c.rc.RequestBodyStream()
	if stream == nil {
		return
	}
	if !drain(c.rc.Conn(), stream, c.rc.Request.Header.ContentLength()) {
		c.rc.SetConnectionClose()
	}
}

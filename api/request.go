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

// onHead is called when the head of a request has arrived. If the announced body is too large
// or the head is ambiguous, the request continues without a body, with a mark for later, and its
// connection will close. Otherwise the body's first byte must come within patience.
func (s *Server) onHead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	h.Del(announced)
	h.Del(unclear)
	if ambiguous(h.RawHeaders()) {
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Set(unclear, "yes")
	}
	if n := h.ContentLength(); n > largestBody {
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Set(announced, strconv.Itoa(n))
	}
	return fasthttp.RequestConfig{ReadTimeout: s.opt.patience}
}

// announced is an internal header with the length of a body that is too large. headRead deletes it
// from what a client sends.
const announced = "announced length"

// unclear is the internal header of an ambiguous head.
const unclear = "unclear head"

// ambiguous reports whether two programs could read the fields of a head differently. A proxy and
// the node must see the same request. RFC 9112 allows refusing all these heads.
func ambiguous(fields []byte) bool {
	framing := 0 // fields that set the length of the body
	for line := range bytes.Lines(fields) {
		text, ends := bytes.CutSuffix(line, []byte("\r\n"))
		folded := len(text) > 0 && (text[0] == ' ' || text[0] == '\t')
		if !ends || folded || bytes.IndexByte(text, '\r') >= 0 {
			return true
		}

		// Compare lengths first, since most fields are neither.
		name, value, _ := bytes.Cut(text, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && strings.EqualFold(string(name), "Content-Length"):
			framing++
		case len(name) == len("Transfer-Encoding") && strings.EqualFold(string(name), "Transfer-Encoding"):
			framing++
			if !strings.EqualFold(string(bytes.Trim(value, " \t")), "chunked") {
				return true
			}
		}
	}
	return framing > 1
}

// announcedTooLarge returns the announced length of a body that is too large; 0 otherwise.
func announcedTooLarge(rc *fasthttp.RequestCtx) int {
	n, _ := strconv.Atoi(string(rc.Request.Header.Peek(announced))) // absent: 0
	return n
}

// readBody reads the body of an admitted request. Its buffer grows with the bytes that arrive,
// whatever length was announced, and counts against the shared memory. A body slower than
// bodyRate is refused.
func (s *Server) readBody(c *call, most int) *failure {
	length := c.rc.Request.Header.ContentLength()
	if announcedTooLarge(c.rc) > 0 || length > most {
		return tooLarge(most)
	}

	stream := c.rc.RequestBodyStream()
	if stream == nil || !c.hasBody() {
		return nil
	}

	// Start small: announcing a megabyte does not send it.
	began := clock.Now()
	room := firstBody
	if length >= 0 {
		room = min(room, length)
	}
	for {
		// Double a full buffer, so that it is at most twice as large as what arrived.
		if f := c.lease.resize(int64(room)); f != nil {
			return f
		}
		c.sent = append(make([]byte, 0, room), c.sent...)

		for len(c.sent) < room {
			if err := c.rc.Conn().SetReadDeadline(s.bodyDeadline(began, len(c.sent))); err != nil {
				return incompleteBody(err)
			}
			n, err := stream.Read(c.sent[len(c.sent):room])
			c.sent = c.sent[:len(c.sent)+n]
			switch {
			case err == io.EOF && len(c.sent) < length:
				return incompleteBody(io.ErrUnexpectedEOF)
			case err == io.EOF:
				return nil
			case err != nil:
				return incompleteBody(err)
			}
		}

		if len(c.sent) == length {
			return nil
		}
		if len(c.sent) > most {
			return tooLarge(most)
		}
		room = min(2*room, most+1)
	}
}

// bodyDeadline returns the time by which more of the body must arrive, after n bytes.
func (s *Server) bodyDeadline(began time.Time, n int) time.Time {
	owed := s.opt.patience + time.Duration(n)*time.Second/bodyRate
	return began.Add(min(owed, readTimeout))
}

// hasBody reports whether the request's body is read. Bodies with other methods are ignored.
func (c *call) hasBody() bool {
	return c.method == fasthttp.MethodPost || c.method == fasthttp.MethodPatch
}

// incompleteBody returns the failure for an incomplete body.
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

// dropBody reads the rest of a refused body. If it is too long, the connection closes after the
// answer.
func (c *call) dropBody() {
	// fasthttp does not know this body, so read from the connection itself.
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

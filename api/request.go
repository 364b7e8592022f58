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

// headRead is called when the head of a request is there. A body that is
// announced too large is not waited for: the request is taken as one without,
// marked for readBody, on a connection that ends with it. Of any other the first
// byte has to come soon.
func (s *Server) headRead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
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

// announced is the mark of a body that was announced too large, with its
// length. What a client sends under that name is dropped.
const announced = "announced length"

// unclear is the mark of a head that two programs may read differently.
const unclear = "unclear head"

// ambiguous reports whether two programs may read the fields of a head, as they were
// sent, differently: a proxy before the node and the node must see one request.
// RFC 9112 lets a server refuse all of these.
func ambiguous(fields []byte) bool {
	framing := 0 // fields that say where the body ends
	for line := range bytes.Lines(fields) {
		text, ends := bytes.CutSuffix(line, []byte("\r\n"))
		folded := len(text) > 0 && (text[0] == ' ' || text[0] == '\t')
		if !ends || folded || bytes.IndexByte(text, '\r') >= 0 {
			return true
		}

		// The length first: most fields are neither.
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

// announcedTooLarge is the length of a body that was announced too large, 0 for none.
func announcedTooLarge(rc *fasthttp.RequestCtx) int {
	n, _ := strconv.Atoi(string(rc.Request.Header.Peek(announced))) // absent: 0
	return n
}

// readBody reads the body of a request that was admitted. It gets room as its
// bytes come, whatever length was announced, out of the memory that all
// requests share. Bytes that come slower than bodyRate are not waited for.
func (s *Server) readBody(c *call, most int) *failure {
	length := c.rc.Request.Header.ContentLength()
	if announcedTooLarge(c.rc) > 0 || length > most {
		return tooLarge(most)
	}

	stream := c.rc.RequestBodyStream()
	if stream == nil || !c.hasBody() {
		return nil
	}

	// Small at first: who announces a megabyte has sent nothing yet.
	began := clock.Now()
	room := firstBody
	if length >= 0 {
		room = min(room, length)
	}
	for {
		// Doubled where it is full: never more than twice of what came.
		if f := c.lease.set(int64(room)); f != nil {
			return f
		}
		c.sent = append(make([]byte, 0, room), c.sent...)

		for len(c.sent) < room {
			if err := c.rc.Conn().SetReadDeadline(s.bodyDue(began, len(c.sent))); err != nil {
				return unread(err)
			}
			n, err := stream.Read(c.sent[len(c.sent):room])
			c.sent = c.sent[:len(c.sent)+n]
			switch {
			case err == io.EOF && len(c.sent) < length:
				return unread(io.ErrUnexpectedEOF)
			case err == io.EOF:
				return nil
			case err != nil:
				return unread(err)
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

// bodyDue is the time by which more has to come of a body of which n bytes came
// since it began.
func (s *Server) bodyDue(began time.Time, n int) time.Time {
	owed := s.opt.patience + time.Duration(n)*time.Second/bodyRate
	return began.Add(min(owed, readTimeout))
}

// hasBody reports whether the body of a request is read. Other methods have none
// here: what comes with them is left alone.
func (c *call) hasBody() bool {
	return c.method == fasthttp.MethodPost || c.method == fasthttp.MethodPatch
}

// unread is the answer for a body that could not be read to its end.
func unread(err error) *failure {
	// Each has an answer of its own, though one whose client has gone reads none.
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
	return &failure{Status: 400, Code: codeMalformed, Message: "The request is not well-formed HTTP/1.1: each line of its head has to end with CR LF and to begin with a name, and one field says how long the body is."}
}

// dropBody takes what is left of the body of a refused request off the
// connection. Where that is too much the connection ends with the answer.
func (c *call) dropBody() {
	// Such a body the server does not know of: it is read from the connection itself.
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

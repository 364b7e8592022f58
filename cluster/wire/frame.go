package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// frame is the unit of messages, in both directions:
//
//	length of the body u32 | kind u8 | call u32 | body
//
// Numbers are little-endian. call numbers the calls of a connection, so that a late answer or a
// late cancel cannot affect another call.
//
// For example, the first call of a connection, of method "ping" with the input "hi" and one second
// left, and its answer "ok":
//
//	0f 00 00 00  01  01 00 00 00    15 bytes, requestFrame, call 1
//	   40 42 0f 00 00 00 00 00      1,000,000 microseconds left
//	   04  70 69 6e 67  68 69       4 bytes "ping", then "hi"
//	02 00 00 00  03  01 00 00 00    2 bytes, responseFrame, call 1
//	   6f 6b                        "ok"
type frame struct {
	kind frameKind
	call uint32
	body []byte
}

type frameKind uint8

const (
	requestFrame  frameKind = iota + 1 // to the server: deadline, method, input
	cancelFrame                        // to the server: the caller gave up
	responseFrame                      // to the client: the output
	errorFrame                         // to the client: kind and text of an error
	chunkFrame                         // to the client: the next bytes of a stream
	endFrame                           // to the client: the end of a stream
	lastFrame     = endFrame
)

const headerLen = 9

// maxChunk is the maximal number of bytes of a stream in one frame.
const maxChunk = 256 << 10

// maxText is the maximal length of an error's text.
const maxText = 16 << 10

var errFrame = errors.New("malformed frame")

// readFrame reads a frame with a body of up to maxBody bytes. Memory grows with the bytes that
// arrive, whatever length the peer claims.
func readFrame(r io.Reader, maxBody int) (frame, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}

	n := binary.LittleEndian.Uint32(h[:])
	f := frame{kind: frameKind(h[4]), call: binary.LittleEndian.Uint32(h[5:])}
	switch {
	case f.kind < requestFrame || f.kind > lastFrame:
		return frame{}, fmt.Errorf("%w: type %d", errFrame, f.kind)
	case int64(n) > int64(maxBody):
		return frame{}, fmt.Errorf("%w: frame of %d bytes, at most %d are allowed", ErrTooLarge, n, maxBody)
	}

	const step = 64 << 10

	// Allocate a small body at once: the claimed length wastes little.
	if n <= step {
		f.body = make([]byte, n)
		_, err := io.ReadFull(r, f.body)
		return f, unexpected(err)
	}

	// Let the buffer of a large body grow with the bytes that arrive.
	var b bytes.Buffer
	b.Grow(step)
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return frame{}, unexpected(err)
	}
	f.body = b.Bytes()
	return f, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendFrame appends a frame whose body is the concatenation of the parts.
func appendFrame(b []byte, kind frameKind, call uint32, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = append(b, byte(kind))
	b = binary.LittleEndian.AppendUint32(b, call)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// request is the body of a requestFrame:
//
//	time left u64 | length of the method u8 | method | input
//
// The time left is in microseconds; 0: no deadline. It is a duration, because the clocks of two
// nodes differ.
type request struct {
	left     time.Duration
	method   string
	argument []byte
}

func (r request) head() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.left/time.Microsecond))
	b = append(b, byte(len(r.method)))
	return append(b, r.method...)
}

// parseRequest decodes the body of a frame that makes a request.
func parseRequest(body []byte) (request, error) {
	if len(body) < 9 || len(body) < 9+int(body[8]) {
		return request{}, fmt.Errorf("%w: request", errFrame)
	}

	// No call takes a day. The limit keeps the product below in range.
	const most = uint64(24 * time.Hour / time.Microsecond)
	us := min(binary.LittleEndian.Uint64(body), most)
	end := 9 + int(body[8])
	return request{
		left:     time.Duration(us) * time.Microsecond,
		method:   string(body[9:end]),
		argument: body[end:],
	}, nil
}

// failure is the body of an errorFrame:
//
//	length of the kind u8 | kind | text
//
// The kind is the name of a row of the table of kinds. It may end with a blank and the milliseconds
// after which to try again: "overloaded 1500". An older node takes that for an unknown kind.
type failure struct {
	kind string
	text string
	wait time.Duration
}

// maxKindName limits the name of a kind, so that a time fits behind it.
const maxKindName = 200

// maxWait is the longest time after which to try again.
const maxWait = 24 * time.Hour

// errorBody encodes an error for a frame.
func errorBody(f failure) []byte {
	if len(f.text) > maxText {
		f.text = strings.ToValidUTF8(f.text[:maxText], "")
	}

	kind := f.kind
	if ms := min(f.wait, maxWait).Milliseconds(); ms > 0 && kind != "" {
		kind += " " + strconv.FormatInt(ms, 10)
	}
	return append(append([]byte{byte(len(kind))}, kind...), f.text...)
}

// parseError decodes the body of a frame that reports an error.
func parseError(body []byte) (failure, error) {
	if len(body) < 1 || len(body) < 1+int(body[0]) {
		return failure{}, fmt.Errorf("%w: error", errFrame)
	}

	end := 1 + int(body[0])
	kind, after, _ := strings.Cut(string(body[1:end]), " ")
	f := failure{kind: kind, text: string(body[end:])}

	// Ignore a malformed time: the error itself still counts.
	if ms, err := strconv.ParseUint(after, 10, 32); err == nil {
		f.wait = min(time.Duration(ms)*time.Millisecond, maxWait)
	}
	return f, nil
}

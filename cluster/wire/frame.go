package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A frame is
//
//	length of the body u32 | type u8 | call u32 | body
//
// all little-endian. call counts the calls of a connection, so that neither a
// late answer nor a late cancel meets the wrong one.
type frame struct {
	kind frameKind
	call uint32
	body []byte
}

type frameKind uint8

const (
	requestFrame  frameKind = iota + 1 // to the server: deadline, method, input
	cancelFrame                        // to the server: nobody waits any more
	responseFrame                      // to the client: the output
	errorFrame                         // to the client: kind and text of an error
	chunkFrame                         // to the client: the next bytes of a stream
	endFrame                           // to the client: the end of a stream
	lastFrame     = endFrame
)

const headerLen = 9

// maxChunk is how many bytes of a stream one frame holds.
const maxChunk = 256 << 10

// maxText is how long the text of an error may be.
const maxText = 16 << 10

var errFrame = errors.New("malformed frame")

// readFrame reads a frame whose body has at most most bytes. Memory is taken
// as bytes arrive, not as the header claims.
func readFrame(r io.Reader, most int) (frame, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	n := binary.LittleEndian.Uint32(h[:])
	f := frame{kind: frameKind(h[4]), call: binary.LittleEndian.Uint32(h[5:])}
	switch {
	case f.kind < requestFrame || f.kind > lastFrame:
		return frame{}, fmt.Errorf("%w: type %d", errFrame, f.kind)
	case int64(n) > int64(most):
		return frame{}, fmt.Errorf("%w: frame of %d bytes, at most %d are allowed", ErrTooLarge, n, most)
	}
	const step = 64 << 10
	if n <= step {
		f.body = make([]byte, n)
		_, err := io.ReadFull(r, f.body)
		return f, unexpected(err)
	}
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

// appendFrame appends the bytes of a frame whose body is the parts together.
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

// request is the body of a requestFrame: the time left in microseconds (0 for
// none, since clocks differ it is no point in time), the method with its
// length before it, the input.
type request struct {
	left   time.Duration
	method string
	in     []byte
}

func (r request) head() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.left/time.Microsecond))
	b = append(b, byte(len(r.method)))
	return append(b, r.method...)
}

func parseRequest(body []byte) (request, error) {
	if len(body) < 9 || len(body) < 9+int(body[8]) {
		return request{}, fmt.Errorf("%w: request", errFrame)
	}
	us := binary.LittleEndian.Uint64(body)
	const most = uint64(24 * time.Hour / time.Microsecond)
	end := 9 + int(body[8])
	return request{left: time.Duration(min(us, most)) * time.Microsecond, method: string(body[9:end]), in: body[end:]}, nil
}

// An errorFrame holds the name of the kind, its length before it, and the
// text.
func errorBody(kind, text string) []byte {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return append(append([]byte{byte(len(kind))}, kind...), text...)
}

func parseError(body []byte) (kind, text string, err error) {
	if len(body) < 1 || len(body) < 1+int(body[0]) {
		return "", "", fmt.Errorf("%w: error", errFrame)
	}
	end := 1 + int(body[0])
	return string(body[1:end]), string(body[end:]), nil
}

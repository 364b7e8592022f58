package call

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// version begins every message. It must change when older nodes would misunderstand messages.
const version = 2

// errVersion is the error for a message that this node cannot read. It counts as an unknown
// method, so that the caller tries another node, which may have its version.
var errVersion = fmt.Errorf("%w: a message of another version", wire.ErrNoMethod)

// Limits of a codec's memory.
const (
	keptShapes = 64       // decoders by type definitions, which differ between processes and sets of atoms
	keptBytes  = 64 << 10 // largest message after which a coder is kept
)

// codec writes and reads the messages of one side of a method:
//
//	message  = version, definitions, values
//
// Gob explains the types of a stream in definitions, once. A message is a stream of its own, so
// a new encoder and decoder would explain and compile them each time, which takes longer than
// the search of a leaf. Coders are kept instead: the definitions stand in front of each message,
// and a decoder that has read the same ones reads the values alone. It is safe for concurrent
// use.
type codec struct {
	atoms    bool      // messages contain interfaces
	encoders sync.Pool // of *encoder

	mu       sync.Mutex
	decoders map[string]*sync.Pool // *decoder by the definitions that it has read
}

// codecOf returns the codec for messages that begin with a T.
func codecOf[T any]() *codec {
	return &codec{atoms: holdsInterface(reflect.TypeFor[T](), map[reflect.Type]bool{})}
}

// holdsInterface reports whether a type contains an interface.
func holdsInterface(t reflect.Type, visited map[reflect.Type]bool) bool {
	if visited[t] {
		return false
	}
	visited[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsInterface(t.Elem(), visited)
	case reflect.Struct:
		return slices.ContainsFunc(sentFields(t), func(f sentField) bool { return holdsInterface(t.Field(f.at).Type, visited) })
	}
	return false
}

// encoder is a gob stream whose definitions every receiver gets.
type encoder struct {
	gob   *gob.Encoder
	atoms int64        // number of registered atoms when it was made
	out   bytes.Buffer // output of the last values
	defs  []byte       // all definitions of the stream so far
}

// encoder returns an unused encoder.
func (c *codec) encoder() *encoder {
	known := registered.Load()
	if e, ok := c.encoders.Get().(*encoder); ok && e.atoms == known {
		return e
	}

	e := &encoder{atoms: known}
	e.gob = gob.NewEncoder(&e.out)
	if c.atoms {
		// Otherwise gob would define an atom in the middle of the first message that contains it,
		// and a receiver of a later message would lack the definition.
		for _, t := range Behind() {
			_ = e.gob.EncodeValue(reflect.New(t)) // an atom without fields needs no definition
		}
	}
	e.defs, _, _ = splitStream(e.out.Bytes())
	return e
}

// decoder is a gob stream of messages with the same definitions.
type decoder struct {
	gob *gob.Decoder
	in  bytes.Reader
}

// encode encodes values into a message. Older programs read only the first value.
func (c *codec) encode(values ...any) ([]byte, error) {
	e := c.encoder()
	e.out.Reset()
	for _, v := range values {
		if err := e.gob.Encode(v); err != nil {
			return nil, fmt.Errorf("encode %T: %w", v, err)
		}
	}

	defs, rest, err := splitStream(e.out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", values[0], err)
	}
	e.defs = append(e.defs, defs...)
	message := make([]byte, 0, 1+len(e.defs)+len(rest))
	message = append(append(append(message, version), e.defs...), rest...)
	if len(message) <= keptBytes {
		c.encoders.Put(e)
	}
	return message, nil
}

// decode decodes a message into values. An older program sends no later values, which stay unchanged.
func (c *codec) decode(message []byte, first any, later ...any) error {
	// Gob would silently skip fields it does not know, so check the version.
	if len(message) == 0 || message[0] != version {
		return errVersion
	}
	defs, values, err := splitStream(message[1:])
	if err != nil {
		return fmt.Errorf("%w: decode %T: %w", errVersion, first, err)
	}

	pool := c.decodersOf(defs)
	if d, ok := pool.Get().(*decoder); ok {
		d.in.Reset(values)
		if d.read(first, later) == nil {
			pool.Put(d)
			return nil
		}
		// An older program defines atoms in the middle of a message, which a used decoder cannot
		// read again. Start over with a new decoder.
		for _, v := range append(later, first) {
			reflect.ValueOf(v).Elem().SetZero()
		}
	}

	d := new(decoder)
	d.in.Reset(append(defs, values...))
	d.gob = gob.NewDecoder(&d.in)
	if err := d.read(first, later); err != nil {
		return fmt.Errorf("%w: decode %T: %w", errVersion, first, err)
	}
	if len(message) <= keptBytes {
		pool.Put(d)
	}
	return nil
}

// read decodes the values of a message. A decoder that fails must not be used again, because its
// position is unknown.
func (d *decoder) read(first any, later []any) error {
	if err := d.gob.Decode(first); err != nil {
		return err
	}
	for _, v := range later {
		if err := d.gob.Decode(v); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// decodersOf returns the pool of decoders that have read these definitions. It makes the pool on first
// use, and drops all pools if there are too many.
func (c *codec) decodersOf(defs []byte) *sync.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pool := c.decoders[string(defs)]
	if pool == nil {
		if len(c.decoders) >= keptShapes || c.decoders == nil {
			c.decoders = map[string]*sync.Pool{}
		}
		pool = new(sync.Pool)
		c.decoders[string(defs)] = pool
	}
	return pool
}

// splitStream separates a gob stream into type definitions and values. Each part is its length, then a
// type id that is negative for a definition. A number is one byte below 128, or the negated count
// of the bytes that follow.
func splitStream(stream []byte) (defs, values []byte, err error) {
	for at := 0; at < len(stream); {
		length, n := decodeNumber(stream[at:])
		if n == 0 || length > uint64(len(stream)-at-n) {
			return nil, nil, errors.New("the stream of values is cut")
		}
		kind, k := decodeNumber(stream[at+n:])
		if k == 0 {
			return nil, nil, errors.New("a value has no type")
		}
		end := at + n + int(length)
		if kind&1 != 0 {
			defs = appendPart(defs, stream, at, end)
		} else {
			values = appendPart(values, stream, at, end)
		}
		at = end
	}
	return defs, values, nil
}

// appendPart appends stream[at:end] to parts. If parts is empty or lies just before at in the stream,
// it returns a longer slice of the stream. Otherwise it copies.
func appendPart(parts, stream []byte, at, end int) []byte {
	start := at - len(parts)
	isAdjacent := len(parts) == 0 || start >= 0 && &parts[0] == &stream[start]
	if isAdjacent {
		return stream[start:end:end]
	}
	return append(parts, stream[at:end]...)
}

// decodeNumber decodes a number of gob, and returns how many bytes it takes; 0 if it is incomplete.
func decodeNumber(b []byte) (v uint64, size int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	size = 1 + int(-int8(b[0]))
	if size > min(len(b), 9) {
		return 0, 0
	}
	for _, x := range b[1:size] {
		v = v<<8 | uint64(x)
	}
	return v, size
}

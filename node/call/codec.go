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

// version stands in front of every message. It changes when a message is no
// longer what an older node takes it for.
const version = 2

// errVersion is of a message that this node does not understand. It is a method
// that is not there: another node may be of the asker's version.
var errVersion = fmt.Errorf("%w: a message of another version", wire.ErrNoMethod)

// The bounds of what a codec keeps.
const (
	keptShapes = 64       // definitions of types, of other processes and of each set of atoms
	keptBytes  = 64 << 10 // of the message that a coder had last
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
	atoms    bool      // values stand behind interfaces
	encoders sync.Pool // of *encoder

	mu       sync.Mutex
	decoders map[string]*sync.Pool // of *decoder, by the definitions that it has read
}

// codecOf returns the codec of messages whose first value has a type.
func codecOf[T any]() *codec {
	return &codec{atoms: holdsInterface(reflect.TypeFor[T](), map[reflect.Type]bool{})}
}

// holdsInterface reports whether values of a type can have others behind an interface.
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
		return slices.ContainsFunc(sentOf(t), func(f sent) bool { return holdsInterface(t.Field(f.at).Type, visited) })
	}
	return false
}

// encoder is a stream to all receivers.
type encoder struct {
	gob   *gob.Encoder
	atoms int64        // registrations of atoms when it was made
	out   bytes.Buffer // what the last values added to the stream
	defs  []byte       // all definitions of the stream
}

// encoder returns one that nobody uses.
func (c *codec) encoder() *encoder {
	known := registered.Load()
	if e, ok := c.encoders.Get().(*encoder); ok && e.atoms == known {
		return e
	}

	e := &encoder{atoms: known}
	e.gob = gob.NewEncoder(&e.out)
	if c.atoms {
		// Gob would explain an atom in the middle of the first value that has one. Then only who
		// read that value could read the next.
		for _, t := range Behind() {
			_ = e.gob.EncodeValue(reflect.New(t)) // an atom without fields has nothing to explain
		}
	}
	e.defs, _, _ = split(e.out.Bytes())
	return e
}

// decoder is a stream of messages with equal definitions.
type decoder struct {
	gob *gob.Decoder
	in  bytes.Reader
}

// encode writes a message. An earlier program reads the first value.
func (c *codec) encode(values ...any) ([]byte, error) {
	e := c.encoder()
	e.out.Reset()
	for _, v := range values {
		if err := e.gob.Encode(v); err != nil {
			return nil, fmt.Errorf("encode %T: %w", v, err)
		}
	}

	defs, rest, err := split(e.out.Bytes())
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

// decode reads a message. Its later values may be missing. Nodes of one version can read what
// each of them sends.
func (c *codec) decode(message []byte, first any, later ...any) error {
	// What gob makes of fields that it does not know is nothing, so it would not notice.
	if len(message) == 0 || message[0] != version {
		return errVersion
	}
	defs, values, err := split(message[1:])
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
		// An earlier program explains atoms where they stand, which one decoder can read once.
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

// read decodes a message. A decoder that fails is not used again: where its stream stands is
// not known.
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

// decodersOf is the decoders that have read some definitions.
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

// split takes a stream of gob apart: the definitions of types, and the values. Each part of the
// stream is its length and what it is: a number that is negative of a definition. A number is a
// byte below 128, or the negated count of the bytes that follow.
func split(stream []byte) (defs, values []byte, err error) {
	for at := 0; at < len(stream); {
		length, n := number(stream[at:])
		if n == 0 || length > uint64(len(stream)-at-n) {
			return nil, nil, errors.New("the stream of values is cut")
		}
		kind, k := number(stream[at+n:])
		if k == 0 {
			return nil, nil, errors.New("a value has no type")
		}
		end := at + n + int(length)
		if kind&1 != 0 {
			defs = joined(defs, stream, at, end)
		} else {
			values = joined(values, stream, at, end)
		}
		at = end
	}
	return defs, values, nil
}

// joined is some parts of a stream and its part from at to end. It is a copy only where others
// stand between them.
func joined(parts, stream []byte, at, end int) []byte {
	if from := at - len(parts); len(parts) == 0 || from >= 0 && &parts[0] == &stream[from] {
		return stream[from:end:end]
	}
	return append(parts, stream[at:end]...)
}

// number reads a number of gob, and how many bytes it takes; none where it is cut.
func number(b []byte) (v uint64, size int) {
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

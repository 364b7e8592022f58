package codec

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/cespare/xxhash/v2"
)

// ErrShort is returned if the bytes end within a value.
var ErrShort = errors.New("bytes end too early")

// ErrNewer is wrapped by errors about data that this program is too old to read or apply.
var ErrNewer = errors.New("written by a newer version")

// Coder encodes and decodes values of one type. Decode reports errors in the Reader.
type Coder struct {
	Encode func(b []byte, v reflect.Value) []byte
	Decode func(r *Reader, v reflect.Value)
	zero   func(v reflect.Value) bool
}

// Reader takes values from the front of Rest. After the first error, which stays in Err, it returns
// zero values.
type Reader struct {
	Rest  []byte
	Err   error
	Words *Words // if not nil, equal short strings share memory
}

// Fail records the first error, and stops the reading.
func (r *Reader) Fail(err error) {
	if r.Err == nil {
		r.Err = err
	}
	r.Rest = nil
}

// Uvarint reads an unsigned number.
func (r *Reader) Uvarint() uint64 {
	n, w := binary.Uvarint(r.Rest)
	if w <= 0 {
		r.Fail(ErrShort)
		return 0
	}
	r.Rest = r.Rest[w:]
	return n
}

// Varint reads a signed number.
func (r *Reader) Varint() int64 {
	n, w := binary.Varint(r.Rest)
	if w <= 0 {
		r.Fail(ErrShort)
		return 0
	}
	r.Rest = r.Rest[w:]
	return n
}

// Take returns the next n bytes, which alias the input.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.Fail(ErrShort)
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Length reads a count of elements. Each element has at least one byte, so a count above the number
// of bytes left is an error.
func (r *Reader) Length() int {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)) {
		r.Fail(ErrShort)
		return 0
	}
	return int(n)
}

// Compile returns the coder of a type. It panics for an unsupported type; tests call it for every
// record and command.
func Compile(t reflect.Type) Coder {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timeCoder()

	case t.Kind() == reflect.Struct:
		return StructCoder(t)
	case t.Kind() == reflect.Pointer:
		return pointerCoder(t)

	// Check for bytes before other slices.
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bytesCoder()
	case t.Kind() == reflect.Slice:
		return sliceCoder(t)
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		return arrayCoder(t)

	case t.Kind() == reflect.String:
		return stringCoder()
	case t.Kind() == reflect.Bool:
		return boolCoder()
	case t.Kind() >= reflect.Uint8 && t.Kind() <= reflect.Uint64:
		return uintCoder()
	case t.Kind() == reflect.Int64:
		return intCoder()
	}
	panic(fmt.Sprintf("BUG: the codec does not know %v", t))
}

func isZero(v reflect.Value) bool { return v.IsZero() }

func uintCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte { return binary.AppendUvarint(b, v.Uint()) },
		Decode: func(r *Reader, v reflect.Value) {
			n := r.Uvarint()

			// A later version may have a wider field. Never truncate a number silently.
			if v.OverflowUint(n) {
				r.Fail(errors.New("number too large"))
				return
			}
			v.SetUint(n)
		},
		zero: isZero,
	}
}

func intCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte { return binary.AppendVarint(b, v.Int()) },
		Decode: func(r *Reader, v reflect.Value) { v.SetInt(r.Varint()) },
		zero:   isZero,
	}
}

func boolCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			if v.Bool() {
				return append(b, 1)
			}
			return append(b, 0)
		},
		Decode: func(r *Reader, v reflect.Value) { v.SetBool(r.Uvarint() != 0) },
		zero:   isZero,
	}
}

func timeCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			return binary.AppendVarint(b, ToMillis(v.Interface().(time.Time)))
		},
		Decode: func(r *Reader, v reflect.Value) { v.Set(reflect.ValueOf(FromMillis(r.Varint()))) },
		zero:   func(v reflect.Value) bool { return ToMillis(v.Interface().(time.Time)) == 0 },
	}
}

// ToMillis returns milliseconds since 1970. Both the zero time and 1970 itself give 0.
func ToMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis returns the time of a ToMillis result; 0 gives the zero time.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func bytesCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			return append(binary.AppendUvarint(b, uint64(v.Len())), v.Bytes()...)
		},
		Decode: func(r *Reader, v reflect.Value) {
			if n := r.Uvarint(); n > 0 {
				v.SetBytes(append([]byte(nil), r.Take(n)...))
			}
		},
		zero: func(v reflect.Value) bool { return v.Len() == 0 },
	}
}

func arrayCoder(t reflect.Type) Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			for i := range t.Len() {
				b = append(b, byte(v.Index(i).Uint()))
			}
			return b
		},
		Decode: func(r *Reader, v reflect.Value) { reflect.Copy(v, reflect.ValueOf(r.Take(uint64(t.Len())))) },
		zero:   isZero,
	}
}

// minPacked is the least length of hexadecimal strings that are packed, as ids and commits.
const minPacked = 40

// Packable reports whether a string is packed to half its length: it is long lower-case
// hexadecimal.
func Packable(s string) bool {
	if len(s) < minPacked || len(s)%2 != 0 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// AppendString encodes a string, for Reader.Text.
func AppendString(b []byte, s string) []byte {
	if !Packable(s) {
		return append(binary.AppendUvarint(b, uint64(len(s))<<1), s...)
	}
	b = binary.AppendUvarint(b, uint64(len(s))<<1|1)
	b, _ = hex.AppendDecode(b, []byte(s))
	return b
}

// Text decodes a string.
func (r *Reader) Text() string {
	n := r.Uvarint()
	if n&1 == 0 {
		return r.Words.intern(r.Take(n >> 1))
	}
	return hex.EncodeToString(r.Take(n >> 2))
}

// Words is a cache of recent short strings, one per hash slot. Repositories of a page often have
// the same host, owner and branch, and so share the memory of these.
type Words [64]string

// maxWord is the maximal length of cached strings.
const maxWord = 32

// intern returns b as a string, from the cache if it is there.
func (w *Words) intern(b []byte) string {
	if w == nil || len(b) == 0 || len(b) > maxWord {
		return string(b)
	}

	slot := &w[xxhash.Sum64(b)%uint64(len(w))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

func stringCoder() Coder {
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte { return AppendString(b, v.String()) },
		Decode: func(r *Reader, v reflect.Value) { v.SetString(r.Text()) },
		zero:   isZero,
	}
}

func sliceCoder(t reflect.Type) Coder {
	elem := Compile(t.Elem())
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			b = binary.AppendUvarint(b, uint64(v.Len()))
			for i := range v.Len() {
				b = elem.Encode(b, v.Index(i))
			}
			return b
		},

		Decode: func(r *Reader, v reflect.Value) {
			n := r.Length()
			if n == 0 {
				return
			}

			// Memory grows with the bytes that are there, whatever the count claims.
			s := reflect.MakeSlice(t, 0, min(n, 256))
			for i := 0; i < n && r.Err == nil; i++ {
				e := reflect.New(t.Elem()).Elem()
				elem.Decode(r, e)
				s = reflect.Append(s, e)
			}
			v.Set(s)
		},
		zero: func(v reflect.Value) bool { return v.Len() == 0 },
	}
}

// pointerCoder encodes nil as 0, and another pointer as 1 and the value.
func pointerCoder(t reflect.Type) Coder {
	elem := Compile(t.Elem())

	// The byte distinguishes nil from a pointer to a zero value.
	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return append(b, 0)
			}
			return elem.Encode(append(b, 1), v.Elem())
		},

		Decode: func(r *Reader, v reflect.Value) {
			if r.Uvarint() == 0 {
				return
			}
			v.Set(reflect.New(t.Elem()))
			elem.Decode(r, v.Elem())
		},

		zero: isZero,
	}
}

// StructCoder returns the coder of a struct type.
func StructCoder(t reflect.Type) Coder {
	// Compile the fields once: thousands of values follow.
	fields := make([]Coder, t.NumField())
	for i := range fields {
		if !t.Field(i).IsExported() {
			panic(fmt.Sprintf("BUG: the codec cannot see %v.%s", t, t.Field(i).Name))
		}
		fields[i] = Compile(t.Field(i).Type)
	}

	// used returns the number of fields up to the last that is not zero.
	used := func(v reflect.Value) int {
		n := len(fields)
		for n > 0 && fields[n-1].zero(v.Field(n-1)) {
			n--
		}
		return n
	}

	return Coder{
		Encode: func(b []byte, v reflect.Value) []byte {
			n := used(v)
			b = binary.AppendUvarint(b, uint64(n))
			for i := range n {
				b = fields[i].Encode(b, v.Field(i))
			}
			return b
		},

		Decode: func(r *Reader, v reflect.Value) {
			n := r.Uvarint()
			if n > uint64(len(fields)) {
				r.Fail(ErrNewer)
				return
			}
			for i := range int(n) {
				fields[i].Decode(r, v.Field(i))
			}
		},
		zero: func(v reflect.Value) bool { return used(v) == 0 },
	}
}

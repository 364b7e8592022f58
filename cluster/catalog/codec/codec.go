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

// ErrShort is the error of bytes that a value does not end in.
var ErrShort = errors.New("bytes end too early")

// ErrNewer is wrapped by the errors of what an older program cannot read or apply.
var ErrNewer = errors.New("written by a newer version")

// Coder encodes and decodes values of one type. dec reports errors in r.
type Coder struct {
	Encode func(b []byte, v reflect.Value) []byte
	Decode func(r *Reader, v reflect.Value)
	zero   func(v reflect.Value) bool
}

// Reader takes values from the front of b. After the first error, which
// stays in err, it returns zero values.
type Reader struct {
	Rest  []byte
	Err   error
	Words *Words // of what is read into records that stay; nil shares nothing
}

// Fail keeps the first error, and ends the reading.
func (r *Reader) Fail(err error) {
	if r.Err == nil {
		r.Err = err
	}
	r.Rest = nil
}

// Uvarint reads a number.
func (r *Reader) Uvarint() uint64 {
	n, w := binary.Uvarint(r.Rest)
	if w <= 0 {
		r.Fail(ErrShort)
		return 0
	}
	r.Rest = r.Rest[w:]
	return n
}

// Varint reads a number with a sign.
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

// Length reads a number of things that take at least one byte each.
func (r *Reader) Length() int {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)) {
		r.Fail(ErrShort)
		return 0
	}
	return int(n)
}

// Compile makes the coder of a type. It panics on a type that the codec does
// not know, which the tests of the tables of records and commands find.
func Compile(t reflect.Type) Coder {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timeCoder()

	case t.Kind() == reflect.Struct:
		return StructCoder(t)
	case t.Kind() == reflect.Pointer:
		return pointerCoder(t)

	// Bytes before other slices: they are one piece, not a list.
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

			// A later version may have a wider field: a number must not be cut without a word.
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

// ToMillis is 0 for the zero time, and for the first instant of 1970.
func ToMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis is the time that ToMillis made a number of.
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

// minPacked is the length from which hexadecimal is packed: ids and commits.
const minPacked = 40

// Packable reports whether a string is written in half of its bytes: long lower-case hexadecimal.
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

// AppendString writes a string as a Reader reads it.
func AppendString(b []byte, s string) []byte {
	if !Packable(s) {
		return append(binary.AppendUvarint(b, uint64(len(s))<<1), s...)
	}
	b = binary.AppendUvarint(b, uint64(len(s))<<1|1)
	b, _ = hex.AppendDecode(b, []byte(s))
	return b
}

// Text reads a string.
func (r *Reader) Text() string {
	n := r.Uvarint()
	if n&1 == 0 {
		return r.Words.of(r.Take(n >> 1))
	}
	return hex.EncodeToString(r.Take(n >> 2))
}

// Words are short strings that came lately, each in a place of its own by its
// hash. Many repositories of a page are of one host, one owner and one branch:
// they share the bytes of those.
type Words [64]string

// maxWord is the length of the longest word that is looked for.
const maxWord = 32

// of returns a string of these bytes.
func (w *Words) of(b []byte) string {
	if w == nil || len(b) == 0 || len(b) > maxWord {
		return string(b)
	}

	place := &w[xxhash.Sum64(b)%uint64(len(w))]
	if *place != string(b) {
		*place = string(b)
	}
	return *place
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

			// Memory follows the bytes that are there, not what they claim.
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

// pointerCoder is for results: nil is 0, else 1 and the value.
func pointerCoder(t reflect.Type) Coder {
	elem := Compile(t.Elem())

	// A byte says which: a pointer to a struct whose fields are all zero is not nil.
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

// StructCoder makes the coder of a struct.
func StructCoder(t reflect.Type) Coder {
	// Compiled once for a type: entries are decoded by the thousand.
	fields := make([]Coder, t.NumField())
	for i := range fields {
		if !t.Field(i).IsExported() {
			panic(fmt.Sprintf("BUG: the codec cannot see %v.%s", t, t.Field(i).Name))
		}
		fields[i] = Compile(t.Field(i).Type)
	}

	// How many fields are written: those up to the last that is not zero.
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

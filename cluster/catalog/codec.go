package catalog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/cespare/xxhash/v2"
)

// The codec writes plain structs as bytes, the same bytes for the same value:
//
//	struct    number of fields up to the last that is not zero, those fields
//	slice     number of elements, elements; nil and empty are one
//	string    length*2, bytes; or length*2+1, half as many bytes for long
//	          lower-case hexadecimal
//	uint      uvarint          int   zigzag varint       bool  0 or 1
//	time      zigzag varint of milliseconds since 1970, in UTC; 0 is the zero time
//	[n]byte   n bytes
//
// A field may be added at the end of a struct: older bytes decode with its
// zero value, and while it is zero the bytes are those of the older
// version. Bytes with fields that this version does not know are refused.
//
// For example, FormerName{Name: "a/b"}, whose second field At is zero:
//
//	01 06 61 2f 62      one field; a string of 3 bytes, "a/b"

var errShort = errors.New("bytes end too early")

// ErrNewer is wrapped by the errors of what an older program cannot read or apply.
var ErrNewer = errors.New("written by a newer version")

// MaxEntry is the size of the largest entry, in bytes.
const MaxEntry = 16 << 20

// coder encodes and decodes values of one type. dec reports errors in r.
type coder struct {
	enc  func(b []byte, v reflect.Value) []byte
	dec  func(r *reader, v reflect.Value)
	zero func(v reflect.Value) bool
}

// reader takes values from the front of b. After the first error, which
// stays in err, it returns zero values.
type reader struct {
	b     []byte
	err   error
	words *words // of what is read into records that stay; nil shares nothing
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) uvarint() uint64 {
	n, w := binary.Uvarint(r.b)
	if w <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[w:]
	return n
}

func (r *reader) varint() int64 {
	n, w := binary.Varint(r.b)
	if w <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[w:]
	return n
}

// take returns the next n bytes, which alias the input.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// length reads a number of things that take at least one byte each.
func (r *reader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

// compile makes the coder of a type. It panics on a type that the codec does
// not know, which the tests of the tables of records and commands find.
func compile(t reflect.Type) coder {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timeCoder()

	case t.Kind() == reflect.Struct:
		return structCoder(t)
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

func uintCoder() coder {
	return coder{
		enc: func(b []byte, v reflect.Value) []byte { return binary.AppendUvarint(b, v.Uint()) },
		dec: func(r *reader, v reflect.Value) {
			n := r.uvarint()

			// A later version may have a wider field: a number must not be cut without a word.
			if v.OverflowUint(n) {
				r.fail(errors.New("number too large"))
				return
			}
			v.SetUint(n)
		},
		zero: isZero,
	}
}

func intCoder() coder {
	return coder{
		enc:  func(b []byte, v reflect.Value) []byte { return binary.AppendVarint(b, v.Int()) },
		dec:  func(r *reader, v reflect.Value) { v.SetInt(r.varint()) },
		zero: isZero,
	}
}

func boolCoder() coder {
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			if v.Bool() {
				return append(b, 1)
			}
			return append(b, 0)
		},
		dec:  func(r *reader, v reflect.Value) { v.SetBool(r.uvarint() != 0) },
		zero: isZero,
	}
}

func timeCoder() coder {
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			return binary.AppendVarint(b, toMillis(v.Interface().(time.Time)))
		},
		dec:  func(r *reader, v reflect.Value) { v.Set(reflect.ValueOf(fromMillis(r.varint()))) },
		zero: func(v reflect.Value) bool { return toMillis(v.Interface().(time.Time)) == 0 },
	}
}

// toMillis is 0 for the zero time, and for the first instant of 1970.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func bytesCoder() coder {
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			return append(binary.AppendUvarint(b, uint64(v.Len())), v.Bytes()...)
		},
		dec: func(r *reader, v reflect.Value) {
			if n := r.uvarint(); n > 0 {
				v.SetBytes(append([]byte(nil), r.take(n)...))
			}
		},
		zero: func(v reflect.Value) bool { return v.Len() == 0 },
	}
}

func arrayCoder(t reflect.Type) coder {
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			for i := range t.Len() {
				b = append(b, byte(v.Index(i).Uint()))
			}
			return b
		},
		dec:  func(r *reader, v reflect.Value) { reflect.Copy(v, reflect.ValueOf(r.take(uint64(t.Len())))) },
		zero: isZero,
	}
}

// minPacked is the length from which hexadecimal is packed: ids and commits.
const minPacked = 40

func packable(s string) bool {
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

func appendString(b []byte, s string) []byte {
	if !packable(s) {
		return append(binary.AppendUvarint(b, uint64(len(s))<<1), s...)
	}
	b = binary.AppendUvarint(b, uint64(len(s))<<1|1)
	b, _ = hex.AppendDecode(b, []byte(s))
	return b
}

func (r *reader) string() string {
	n := r.uvarint()
	if n&1 == 0 {
		return r.words.of(r.take(n >> 1))
	}
	return hex.EncodeToString(r.take(n >> 2))
}

// words are short strings that came lately, each in a place of its own by its
// hash. Many repositories of a page are of one host, one owner and one branch:
// they share the bytes of those.
type words [64]string

// maxWord is the length of the longest word that is looked for.
const maxWord = 32

// of returns a string of these bytes.
func (w *words) of(b []byte) string {
	if w == nil || len(b) == 0 || len(b) > maxWord {
		return string(b)
	}

	place := &w[xxhash.Sum64(b)%uint64(len(w))]
	if *place != string(b) {
		*place = string(b)
	}
	return *place
}

func stringCoder() coder {
	return coder{
		enc:  func(b []byte, v reflect.Value) []byte { return appendString(b, v.String()) },
		dec:  func(r *reader, v reflect.Value) { v.SetString(r.string()) },
		zero: isZero,
	}
}

func sliceCoder(t reflect.Type) coder {
	elem := compile(t.Elem())
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			b = binary.AppendUvarint(b, uint64(v.Len()))
			for i := range v.Len() {
				b = elem.enc(b, v.Index(i))
			}
			return b
		},

		dec: func(r *reader, v reflect.Value) {
			n := r.length()
			if n == 0 {
				return
			}

			// Memory follows the bytes that are there, not what they claim.
			s := reflect.MakeSlice(t, 0, min(n, 256))
			for i := 0; i < n && r.err == nil; i++ {
				e := reflect.New(t.Elem()).Elem()
				elem.dec(r, e)
				s = reflect.Append(s, e)
			}
			v.Set(s)
		},
		zero: func(v reflect.Value) bool { return v.Len() == 0 },
	}
}

// pointerCoder is for results: nil is 0, else 1 and the value.
func pointerCoder(t reflect.Type) coder {
	elem := compile(t.Elem())

	// A byte says which: a pointer to a struct whose fields are all zero is not nil.
	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return append(b, 0)
			}
			return elem.enc(append(b, 1), v.Elem())
		},

		dec: func(r *reader, v reflect.Value) {
			if r.uvarint() == 0 {
				return
			}
			v.Set(reflect.New(t.Elem()))
			elem.dec(r, v.Elem())
		},

		zero: isZero,
	}
}

func structCoder(t reflect.Type) coder {
	// Compiled once for a type: entries are decoded by the thousand.
	fields := make([]coder, t.NumField())
	for i := range fields {
		if !t.Field(i).IsExported() {
			panic(fmt.Sprintf("BUG: the codec cannot see %v.%s", t, t.Field(i).Name))
		}
		fields[i] = compile(t.Field(i).Type)
	}

	// How many fields are written: those up to the last that is not zero.
	used := func(v reflect.Value) int {
		n := len(fields)
		for n > 0 && fields[n-1].zero(v.Field(n-1)) {
			n--
		}
		return n
	}

	return coder{
		enc: func(b []byte, v reflect.Value) []byte {
			n := used(v)
			b = binary.AppendUvarint(b, uint64(n))
			for i := range n {
				b = fields[i].enc(b, v.Field(i))
			}
			return b
		},

		dec: func(r *reader, v reflect.Value) {
			n := r.uvarint()
			if n > uint64(len(fields)) {
				r.fail(ErrNewer)
				return
			}
			for i := range int(n) {
				fields[i].dec(r, v.Field(i))
			}
		},
		zero: func(v reflect.Value) bool { return used(v) == 0 },
	}
}

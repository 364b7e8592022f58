package charset

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"
)

// encode is the naive inverse of Decode: it writes the mark and the code units of a text.
func encode(e Encoding, text string) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if e == UTF16BE || e == UTF32BE {
		order = binary.BigEndian
	}
	out := []byte(encodings[e].mark)
	switch e {
	case None, UTF8Mark:
		return append(out, text...)
	case UTF16LE, UTF16BE:
		for _, unit := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, unit)
		}
	default:
		for _, r := range text {
			out = order.AppendUint32(out, uint32(r))
		}
	}
	return out
}

func TestDecode_undoesEncode(t *testing.T) {
	t.Parallel()
	letters := []rune("aZ0 \r\n\u010a\u0a0d\ufeffé検😀\U0010ffff")
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		e := Encoding(r.IntN(int(count)))
		var text []rune
		for range r.IntN(40) {
			text = append(text, letters[r.IntN(len(letters))])
		}
		// Without a mark in front, a text that begins with a mark would be decoded as another
		// encoding.
		if e == None && len(text) > 0 && text[0] == '\ufeff' {
			continue
		}
		file, want := encode(e, string(text)), string(text)

		got, of := Decode([]byte("before"), file)
		got = bytes.TrimPrefix(got, []byte("before"))
		if of != e || string(got) != want {
			t.Fatalf("Decode(%q) = %q, %v; want %q, %v", file, got, of, want, e)
		}

		// A reader gives the same text, however small the pieces of the file are.
		in, of := NewReader(iotest.OneByteReader(bytes.NewReader(file)), 16)
		if all, err := io.ReadAll(in); of != e || string(all) != want || err != nil {
			t.Fatalf("NewReader(%q) reads %q, %v, %v; want %q, %v", file, all, of, err, want, e)
		}
	}
}

func TestDecode_replacesDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, want string
		of               Encoding
	}{
		{"odd length", "\xff\xfea\x00b", "a\ufffd", UTF16LE},
		{"lone high surrogate", "\xfe\xff\xd8\x00\x00a", "\ufffda", UTF16BE},
		{"lone low surrogate", "\xff\xfe\x00\xdca\x00", "\ufffda", UTF16LE},
		{"high surrogate at the end", "\xff\xfea\x00\x00\xd8", "a\ufffd", UTF16LE},
		{"part of a unit of UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00b\x00", "a\ufffd", UTF32LE},
		{"beyond Unicode", "\x00\x00\xfe\xff\x00\x11\x00\x00", "\ufffd", UTF32BE},
		{"a mark alone", "\xff\xfe", "", UTF16LE},
		{"half a mark", "\xef\xbb", "\xef\xbb", None},
		{"nothing", "", "", None},
	} {
		got, of := Decode(nil, []byte(c.file))
		if string(got) != c.want || of != c.of {
			t.Errorf("%s: Decode(%q) = %q, %v; want %q, %v", c.name, c.file, got, of, c.want, c.of)
		}
		if of > UTF8Mark && !utf8.Valid(got) {
			t.Errorf("%s: the text is no UTF-8", c.name)
		}
	}
}

func TestBinary_isDecidedByEarlyNULs(t *testing.T) {
	t.Parallel()
	at := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) + "\x00" }
	for _, c := range []struct {
		name string
		file []byte
		want bool
	}{
		{"NUL is the last byte that counts", []byte(at(7999)), true},
		{"NUL is behind it", []byte(at(8000)), false},
		{"the mark of UTF-8 counts", encode(UTF8Mark, at(7996)), true},
		{"NUL is behind a mark and 7,997 bytes", encode(UTF8Mark, at(7997)), false},
		{"UTF-16 is full of NUL bytes", encode(UTF16LE, "text"), false},
		{"the text of UTF-16 has a NUL", encode(UTF16BE, "te\x00xt"), true},
		{"the text of UTF-32 has none", encode(UTF32BE, "text"), false},
	} {
		if text, e := Decode(nil, c.file); Binary(text, e) != c.want {
			t.Errorf("%s: Binary = %v, want %v", c.name, !c.want, c.want)
		}
	}
}

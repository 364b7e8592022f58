// Package charset decodes the text of a file that begins with a byte order mark.
//
// Everything else in the product sees UTF-8: a file is decoded once when it is indexed, and
// whenever somebody reads it. The mark itself is part of no line.
package charset

import (
	"bufio"
	"bytes"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// Encoding is how the bytes of a file stand for its text.
type Encoding uint8

// The encodings. Their numbers stand in shard files.
const (
	None     Encoding = iota // no mark: the bytes are the text
	UTF8Mark                 // UTF-8 behind a byte order mark
	UTF16LE
	UTF16BE
	UTF32LE
	UTF32BE
	count
)

// encodings are the rows of the table, by Encoding.
var encodings = [count]struct {
	name   string
	mark   string
	decode encoding.Encoding // nil where the bytes behind the mark are the text
}{
	UTF8Mark: {"", "\xEF\xBB\xBF", nil},
	UTF16LE:  {"utf-16le", "\xFF\xFE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	UTF16BE:  {"utf-16be", "\xFE\xFF", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	UTF32LE:  {"utf-32le", "\xFF\xFE\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	UTF32BE:  {"utf-32be", "\x00\x00\xFE\xFF", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
}

// String returns the name that answers show: "utf-16le" and so on, "" for UTF-8 with a mark
// or without one.
func (e Encoding) String() string { return encodings[e%count].name }

// Base is the byte offset of the first byte of the text. The mark of a UTF-8 file counts;
// offsets in a file that had to be decoded are offsets in its text.
func (e Encoding) Base() int {
	if e == UTF8Mark {
		return len(encodings[e].mark)
	}
	return 0
}

// Of returns the encoding of a file by its first bytes, of which four are enough.
func Of(head []byte) Encoding {
	// The mark of UTF-16LE begins that of UTF-32LE: the longer one is asked for first.
	for e := count - 1; e > None; e-- {
		if bytes.HasPrefix(head, []byte(encodings[e].mark)) {
			return e
		}
	}
	return None
}

// Decode returns the text of a file in UTF-8, without its mark. Where the bytes are the
// text already it is a part of content, else it is appended to buf. Units that stand for no
// letter become U+FFFD.
func Decode(buf, content []byte) ([]byte, Encoding) {
	e := Of(content)
	body := content[len(encodings[e].mark):]
	if encodings[e].decode == nil {
		return body, e
	}

	// A decoder of this table replaces what is damaged and returns no error.
	text, _, err := transform.Append(encodings[e].decode.NewDecoder(), buf, body)
	if err != nil {
		return body, e
	}
	return text, e
}

// NewReader returns a reader of the text of a file, and its encoding.
func NewReader(file io.Reader, size int) (*bufio.Reader, Encoding) {
	in := bufio.NewReaderSize(file, size)
	head, _ := in.Peek(4) // a shorter file has fewer; reading it returns any other error
	e := Of(head)
	_, _ = in.Discard(len(encodings[e].mark)) // it was peeked at
	if encodings[e].decode == nil {
		return in, e
	}
	return bufio.NewReaderSize(transform.NewReader(in, encodings[e].decode.NewDecoder()), size), e
}

// BinaryHead is how many bytes at the beginning of a text decide whether it is binary.
const BinaryHead = 8000

// Binary reports whether a file is binary, as git decides it: by a NUL among its first
// 8,000 bytes. Of a file that had to be decoded those of its text count.
func Binary(text []byte, e Encoding) bool {
	return bytes.IndexByte(text[:min(len(text), BinaryHead-e.Base())], 0) >= 0
}

// Package charset decodes the text of a file that begins with a byte order mark.
//
// The rest of the product sees UTF-8: a file is decoded once when it is indexed, and whenever
// somebody reads it. The mark itself belongs to no line.
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

// Encoding is the encoding of the bytes of a file.
type Encoding uint8

// The values of Encoding. Shard files contain them.
const (
	None     Encoding = iota // no mark: the bytes are the text
	UTF8Mark                 // UTF-8 after a byte order mark
	UTF16LE
	UTF16BE
	UTF32LE
	UTF32BE
	count
)

// encodings is the table of encodings, by Encoding.
var encodings = [count]struct {
	name   string
	mark   string
	decode encoding.Encoding // nil if the bytes after the mark are the text
}{
	UTF8Mark: {"", "\xEF\xBB\xBF", nil},
	UTF16LE:  {"utf-16le", "\xFF\xFE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	UTF16BE:  {"utf-16be", "\xFE\xFF", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	UTF32LE:  {"utf-32le", "\xFF\xFE\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	UTF32BE:  {"utf-32be", "\x00\x00\xFE\xFF", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
}

// String returns the name that answers show, such as "utf-16le"; "" for UTF-8 with or without a
// mark.
func (e Encoding) String() string { return encodings[e%count].name }

// Base returns the byte offset of the first byte of the text. The mark of a UTF-8 file counts. If a
// file had to be decoded, offsets are offsets in its text.
func (e Encoding) Base() int {
	if e == UTF8Mark {
		return len(encodings[e].mark)
	}
	return 0
}

// Of returns the encoding of a file from its first four bytes.
func Of(head []byte) Encoding {
	// The mark of UTF-32LE begins with that of UTF-16LE: try the longer one first.
	for e := count - 1; e > None; e-- {
		if bytes.HasPrefix(head, []byte(encodings[e].mark)) {
			return e
		}
	}
	return None
}

// Decode returns the text of a file in UTF-8, without its mark. If the bytes are the text already,
// it returns a part of content; otherwise it appends the text to buf. Invalid units become U+FFFD.
func Decode(buf, content []byte) ([]byte, Encoding) {
	e := Of(content)
	body := content[len(encodings[e].mark):]
	if encodings[e].decode == nil {
		return body, e
	}

	// The decoders replace damaged units and return no error.
	text, _, err := transform.Append(encodings[e].decode.NewDecoder(), buf, body)
	if err != nil {
		return body, e
	}
	return text, e
}

// NewReader returns a reader of the text of a file, and its encoding.
func NewReader(file io.Reader, size int) (*bufio.Reader, Encoding) {
	in := bufio.NewReaderSize(file, size)
	head, _ := in.Peek(4) // a shorter file has fewer; reading it returns other errors
	e := Of(head)
	_, _ = in.Discard(len(encodings[e].mark)) // Peek has read these bytes already
	if encodings[e].decode == nil {
		return in, e
	}
	return bufio.NewReaderSize(transform.NewReader(in, encodings[e].decode.NewDecoder()), size), e
}

// BinaryHead is how many bytes at the start of a text decide whether it is binary.
const BinaryHead = 8000

// Binary reports whether a file is binary by git's rule: a NUL among its first 8,000 bytes. If the
// file had to be decoded, the bytes of its text count.
func Binary(text []byte, e Encoding) bool {
	return bytes.IndexByte(text[:min(len(text), BinaryHead-e.Base())], 0) >= 0
}

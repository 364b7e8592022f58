package api

import (
	"strconv"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard"
)

// The functions of this file encode frequent and large answers: they append to one slice and
// allocate nothing else. Other answers use encoding/json.
//
// Their output is always valid UTF-8: each invalid byte of a file becomes U+FFFD.

// needsNoEscape reports for each byte whether a JSON string contains it unescaped.
var needsNoEscape = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// appendText appends s as a JSON string.
func appendText[T string | []byte](dst []byte, s T) []byte {
	// The bytes from start to i need no escape. Copy them together, when one that needs it comes.
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if needsNoEscape[c] {
			i++
			continue
		}

		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}

		// Replace a byte that is no part of a valid character.
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendTextField appends a string member of an object. name is its JSON with all punctuation
// before the value: `,"name":`. So it is for all appenders with a name.
func appendTextField[T string | []byte](dst []byte, name string, s T) []byte {
	return appendText(append(dst, name...), s)
}

func appendInt[T ~int | ~int64](dst []byte, name string, n T) []byte {
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}

func appendUint[T ~uint32 | ~uint64](dst []byte, name string, n T) []byte {
	return strconv.AppendUint(append(dst, name...), uint64(n), 10)
}

func appendBool(dst []byte, name string, b bool) []byte {
	return strconv.AppendBool(append(dst, name...), b)
}

func appendTexts(dst []byte, name string, list []string) []byte {
	dst = append(append(dst, name...), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, ']')
}

func appendPosition(dst []byte, p shard.Position) []byte {
	dst = appendUint(dst, `{"byteOffset":`, p.Offset)
	dst = appendUint(dst, `,"lineNumber":`, p.Line)
	dst = appendUint(dst, `,"column":`, p.Column)
	return append(dst, '}')
}

func appendRange(dst []byte, r shard.Range) []byte {
	dst = appendPosition(append(dst, `{"start":`...), r.Start)
	dst = appendPosition(append(dst, `,"end":`...), r.End)
	return append(dst, '}')
}

func appendRanges(dst []byte, name string, ranges []shard.Range) []byte {
	dst = append(append(dst, name...), '[')
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRange(dst, r)
	}
	return append(dst, ']')
}

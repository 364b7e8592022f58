package symbol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// answer is one line of the output of ctags. Its fields are parts of that line, or of spare if they
// have escapes.
type answer struct {
	kindOfAnswer []byte // tag, completed, error and others
	name         []byte
	kind         []byte
	scope        []byte
	scopeKind    []byte
	line         uint32
	end          uint32
	signature    []byte // only with signatureFormat
	warning      bool   // in an error: it is about one symbol, not the whole file

	spare [3][]byte // buffers for a name, a scope and a signature with escapes
}

// tagFormat is how ctags writes a tag: fields with tabs between them, which take less than half of
// the bytes of JSON. Its other answers are still JSON objects. A tab, a newline and a backslash in
// a field are escaped, so a line that begins with a digit is always a tag.
//
//	12 TAB function TAB struct TAB area TAB shape TAB 19
//
// means that line 12 has the function area of the struct shape, which ends in line 19. The end is
// empty if ctags does not know it.
const tagFormat = "%n\t%K\t%p\t%N\t%s\t%e"

// signatureFormat is tagFormat plus the parameters of a function; "-" means none.
const signatureFormat = tagFormat + "\t%S"

var wordTag = []byte("tag")

// parse parses a line. It must be fast, because ctags writes a line for each of millions of
// symbols.
func (a *answer) parse(line []byte) error {
	if len(line) == 0 || line[0] < '0' || line[0] > '9' {
		return a.parseObject(line)
	}

	rest, ok := bytes.CutSuffix(line, []byte{'\n'})

	// Every tag has these fields.
	var number []byte
	for _, field := range []*[]byte{&number, &a.kind, &a.scopeKind, &a.name} {
		i := bytes.IndexByte(rest, '\t')
		if i < 0 {
			return fmt.Errorf("not an answer: %.80q", line)
		}
		*field, rest = rest[:i], rest[i+1:]
	}

	// Then come the scope, the end and perhaps the signature.
	a.scope, rest, _ = bytes.Cut(rest, []byte{'\t'})
	end, signature, _ := bytes.Cut(rest, []byte{'\t'})
	ok = ok && bytes.IndexByte(signature, '\t') < 0
	a.end, a.signature = lineNumber(end), nil
	if len(signature) > 0 && string(signature) != "-" {
		a.signature, a.spare[2] = unescape(signature, a.spare[2])
	}

	if !ok {
		return fmt.Errorf("not an answer: %.80q", line)
	}

	a.kindOfAnswer = wordTag
	a.line = lineNumber(number)
	a.name, a.spare[0] = unescape(a.name, a.spare[0])
	a.scope, a.spare[1] = unescape(a.scope, a.spare[1])
	return nil
}

// unescape decodes the escapes of a field: \t and similar ones, \x with two hexadecimal digits, and
// a backslash before any other character, which stands for that character. It returns a field
// without escapes as it is. Otherwise it decodes the field into buf. grown is buf, for the next call.
func unescape(field, buf []byte) (plain, grown []byte) {
	i := bytes.IndexByte(field, '\\')
	if i < 0 {
		return field, buf
	}

	// In each round copy the text up to a backslash, then decode the escape.
	buf = buf[:0]
	for ; i >= 0 && i+1 < len(field); i = bytes.IndexByte(field, '\\') {
		buf = append(buf, field[:i]...)

		n := 2 // length of the escape
		switch c := field[i+1]; c {
		case 'a', 'b', 't', 'n', 'v', 'f', 'r':
			buf = append(buf, "\a\b\t\n\v\f\r"[strings.IndexByte("abtnvfr", c)])
		case 'x':
			n = min(4, len(field)-i)
			v, err := strconv.ParseUint(string(field[i+2:i+n]), 16, 8)
			if err != nil { // without two digits it is no escape
				buf = append(buf, field[i:i+n]...)
				break
			}
			buf = append(buf, byte(v))
		default:
			buf = append(buf, c)
		}

		field = field[i+n:]
	}

	buf = append(buf, field...)
	return buf, buf
}

// lineNumber returns the number that the digits in b write; 0 if b has other bytes or is too long.
func lineNumber(b []byte) uint32 {
	line := uint32(0)
	for _, c := range b {
		if c < '0' || c > '9' || line > 1<<28 {
			return 0
		}
		line = line*10 + uint32(c-'0')
	}
	return line
}

// parseObject parses an answer that is a JSON object without nested values. It resets the fields
// that the object does not have.
func (a *answer) parseObject(line []byte) error {
	*a = answer{spare: a.spare}

	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return fmt.Errorf("not an answer: %.80q", line)
	}

	rest := line[1 : len(line)-1]
	for {
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) == 0 {
			return nil
		}

		var key, value []byte
		var ok bool
		if key, rest, ok = cutString(rest); !ok {
			break
		}

		rest = bytes.TrimLeft(rest, " ")
		if len(rest) == 0 || rest[0] != ':' {
			break
		}

		rest = bytes.TrimLeft(rest[1:], " ")
		if len(rest) > 0 && rest[0] == '"' {
			if value, rest, ok = cutString(rest); !ok {
				break
			}
		} else {
			// A number or a word ends at the comma.
			i := bytes.IndexByte(rest, ',')
			if i < 0 {
				i = len(rest)
			}
			value, rest = rest[:i], rest[i:]
		}
		a.setMember(key, value)
	}
	return fmt.Errorf("not an answer: %.80q", line)
}

// setMember stores a member of a JSON object. It ignores unknown members.
func (a *answer) setMember(key, value []byte) {
	switch string(key) {
	case "_type":
		a.kindOfAnswer = value
	case "name":
		a.name = value
	case "kind":
		a.kind = value

	case "scope":
		a.scope = value
	case "scopeKind":
		a.scopeKind = value

	case "line":
		a.line = lineNumber(value)
	case "warning":
		a.warning = string(value) == "true"
	}
}

// cutString removes a JSON string from the front of b, and returns it decoded; ok is false if b does
// not begin with one.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}

	// Most strings have no escape, and are returned as a part of the line.
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return b[1:i], b[i+1:], true
		case '\\':
			return cutEscaped(b, i)
		}
	}
	return nil, nil, false
}

// cutEscaped is cutString for a string whose first escape is at i.
func cutEscaped(b []byte, i int) (s, rest []byte, ok bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			// An escaped quote does not end the string.
			i++
		case '"':
			var decoded string
			if json.Unmarshal(b[:i+1], &decoded) != nil {
				return nil, nil, false
			}
			return []byte(decoded), b[i+1:], true
		}
	}
	return nil, nil, false
}

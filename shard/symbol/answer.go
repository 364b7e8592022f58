package symbol

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// answer is one line of the program. Its parts point into the line where
// they need no decoding.
type answer struct {
	kindOfAnswer []byte // tag, completed, error...
	name         []byte
	kind         []byte
	scope        []byte
	scopeKind    []byte
	line         uint32
	warning      bool // of an error: it concerns one symbol, not the file
}

// parseAnswer reads a flat JSON object. The program writes one for each
// symbol, millions of them; a general decoder would take longer to read them
// than the program to find them.
func parseAnswer(line []byte) (a answer, err error) {
	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return a, fmt.Errorf("not an answer: %.80q", line)
	}
	rest := line[1 : len(line)-1]
	for {
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) == 0 {
			return a, nil
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
			i := bytes.IndexByte(rest, ',')
			if i < 0 {
				i = len(rest)
			}
			value, rest = rest[:i], rest[i:]
		}
		a.set(key, value)
	}
	return a, fmt.Errorf("not an answer: %.80q", line)
}

func (a *answer) set(key, value []byte) {
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
	case "warning":
		a.warning = string(value) == "true"
	case "line":
		a.line = 0
		for _, c := range value {
			if c < '0' || c > '9' || a.line > 1<<28 {
				a.line = 0
				return
			}
			a.line = a.line*10 + uint32(c-'0')
		}
	}
}

// cutString takes a JSON string off the front of b.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
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

// cutEscaped is cutString for one with an escape at i.
func cutEscaped(b []byte, i int) (s, rest []byte, ok bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
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

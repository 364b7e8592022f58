package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/tool"
)

// fields is the decoded object of a request body. Its methods take a member
// each and note what is wrong with it, so that one answer names every mistake.
// A member that no method has asked for is a mistake too, unless any says that
// others are ignored.
type fields struct {
	raw   map[string]json.RawMessage
	asked []string // names
	any   bool
	errs  []string
}

// decodeBody reads a request body that has to be one JSON object.
func decodeBody(body []byte) (*fields, error) {
	// The library replaces bytes that are no UTF-8: a search for them would find other files.
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, invalidBody("expected a JSON object, received an empty body")
	}
	if i := invalidUTF8(body); i >= 0 {
		return nil, invalidBody("the body is not valid UTF-8 at byte %d", i)
	}

	// Members stay raw: each is decoded when a handler asks for it, and says what is wrong.
	f := &fields{}
	err := json.Unmarshal(body, &f.raw)

	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError

	// The texts of the library name Go's types: these say it in words of JSON.
	switch {
	case errors.As(err, &syntax):
		return nil, invalidBody("malformed JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.As(err, &typ):
		return nil, invalidBody("expected a JSON object, received %s", typ.Value)
	case err != nil:
		return nil, invalidBody("malformed JSON")
	case f.raw == nil:
		return nil, invalidBody("expected a JSON object, received null")
	}
	return f, nil
}

// invalidUTF8 is the offset of the first byte that is not UTF-8, -1 for none.
func invalidUTF8(b []byte) int {
	// ASCII, which most bodies are, without decoding.
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// err is the failure that names every mistake, in the order of the names; nil for none.
func (f *fields) err() error {
	// Members come in the order of a map: sorted, an answer is the same each time.
	errs := append(slices.Clone(f.errs), f.unknown()...)
	if len(errs) == 0 {
		return nil
	}
	sort.Strings(errs)
	return invalidBody("%s", strings.Join(errs, "; "))
}

// unknown says of each member that nobody has asked for which one may be meant.
func (f *fields) unknown() (errs []string) {
	if f.any {
		return nil
	}

	for name := range f.raw {
		if slices.Contains(f.asked, name) {
			continue
		}

		// A name that is nearly right is a typing error more often than anything else.
		hint := "known are " + strings.Join(f.asked, ", ")
		if near := tool.NearestName(name, f.asked); near != "" {
			hint = "did you mean " + near + "?"
		}
		errs = append(errs, fmt.Sprintf("%.100s: unknown; %s", name, hint))
	}
	return errs
}

func (f *fields) wrong(name, format string, args ...any) {
	f.errs = append(f.errs, name+": "+fmt.Sprintf(format, args...))
}

// member returns a member that is there and not null.
func (f *fields) member(name string) (json.RawMessage, bool) {
	if !slices.Contains(f.asked, name) {
		f.asked = append(f.asked, name)
	}
	raw, ok := f.raw[name]
	return raw, ok && string(raw) != "null"
}

// required is a string that has to be there and not empty.
func (f *fields) required(name string) string {
	if _, ok := f.member(name); !ok {
		f.wrong(name, "required")
		return ""
	}
	before := len(f.errs)
	s := f.text(name)
	if s == "" && len(f.errs) == before {
		f.wrong(name, "must not be empty")
	}
	return s
}

// text is a string, "" where it is not given.
func (f *fields) text(name string) string {
	raw, ok := f.member(name)
	if !ok {
		return ""
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		f.wrong(name, "expected a string, received %s", kindOf(raw))
	}
	return s
}

// texts is a list of strings.
func (f *fields) texts(name string) []string {
	raw, ok := f.member(name)
	if !ok {
		f.wrong(name, "required")
		return nil
	}

	// Pointers show which of them are null.
	var list []*string
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		f.wrong(name, "expected an array of strings, received %s", kindOf(raw))
		return nil
	}

	out := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			f.wrong(fmt.Sprintf("%s[%d]", name, i), "expected a string, received null")
			continue
		}
		out[i] = *s
	}
	return out
}

// flag is a boolean, false where it is not given.
func (f *fields) flag(name string) bool {
	raw, ok := f.member(name)
	if !ok {
		return false
	}
	if s := string(raw); s != "true" && s != "false" {
		f.wrong(name, "expected a boolean, received %s", kindOf(raw))
	}
	return string(raw) == "true"
}

// integer is a whole number between lo and hi, 0 where it is not given.
func (f *fields) integer(name string, lo, hi int) int {
	// 1e3 and 1.0 are whole numbers in JSON, so it is read as a fraction first.
	raw, ok := f.member(name)
	if !ok {
		return 0
	}

	var n float64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &n) != nil {
		if kindOf(raw) == "a number" { // too large for any type
			f.wrong(name, "must be between %d and %d", lo, hi)
			return 0
		}
		f.wrong(name, "expected a number, received %s", kindOf(raw))
		return 0
	}

	if n != math.Trunc(n) {
		f.wrong(name, "expected a whole number, received %s", raw)
		return 0
	}
	if n < float64(lo) || n > float64(hi) {
		f.wrong(name, "must be between %d and %d", lo, hi)
		return 0
	}
	return int(n)
}

// maxKeyDays bounds the life of a key that has an end.
const maxKeyDays = 3650

// lifetime is how long something lasts that ends at expiresAt, a time in the
// future, or after expiresInDays; 0 for ever.
func (f *fields) lifetime(now time.Time) time.Duration {
	// Both are read in any case, so that neither counts as unknown.
	days := f.integer("expiresInDays", 1, maxKeyDays)
	at := f.text("expiresAt")
	if at == "" {
		return time.Duration(days) * 24 * time.Hour
	}

	// Bounded: a date with a wrong digit would be a key for a thousand years.
	end, err := time.Parse(time.RFC3339, at)
	switch {
	case err != nil:
		f.wrong("expiresAt", "expected a time such as 2030-01-31T12:00:00Z, received %.100q", at)
	case !end.After(now):
		f.wrong("expiresAt", "is in the past")
	case end.After(now.AddDate(0, 0, maxKeyDays)):
		f.wrong("expiresAt", "must be within %d days", maxKeyDays)
	case days != 0:
		f.wrong("expiresAt", "give one of expiresAt and expiresInDays")
	}
	return end.Sub(now)
}

// kindOf names the type of a JSON value.
func kindOf(raw json.RawMessage) string {
	// The first byte says it: the decoder has proved that the rest is well-formed.
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

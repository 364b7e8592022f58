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

// fields is the JSON object of a request body. Its methods decode one member each and collect
// errors, so that one answer names every mistake. A member that no method reads is an error,
// unless any is set.
type fields struct {
	raw   map[string]json.RawMessage
	asked []string // names read so far
	any   bool
	errs  []string
}

// decodeBody parses a request body, which must be one JSON object.
func decodeBody(body []byte) (*fields, error) {
	// The JSON library would replace invalid UTF-8, and a search would find other files.
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, invalidBody("expected a JSON object, received an empty body")
	}
	if i := invalidUTF8(body); i >= 0 {
		return nil, invalidBody("the body is not valid UTF-8 at byte %d", i)
	}

	// Decode each member when a handler reads it.
	f := &fields{}
	err := json.Unmarshal(body, &f.raw)

	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError

	// The library's messages name Go types; replace them.
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

// invalidUTF8 returns the offset of the first byte that is not UTF-8; -1 if there is none.
func invalidUTF8(b []byte) int {
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

// err returns one failure that names every mistake, by name; nil if there is none.
func (f *fields) err() error {
	// Sort, because a map has no order.
	errs := append(slices.Clone(f.errs), f.unknown()...)
	if len(errs) == 0 {
		return nil
	}
	sort.Strings(errs)
	return invalidBody("%s", strings.Join(errs, "; "))
}

// unknown returns an error for each member that no method has read, with a similar known name.
func (f *fields) unknown() (errs []string) {
	if f.any {
		return nil
	}

	for name := range f.raw {
		if slices.Contains(f.asked, name) {
			continue
		}

		// A similar name means a typing error.
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

// member returns a member unless it is missing or null.
func (f *fields) member(name string) (json.RawMessage, bool) {
	if !slices.Contains(f.asked, name) {
		f.asked = append(f.asked, name)
	}
	raw, ok := f.raw[name]
	return raw, ok && string(raw) != "null"
}

// required returns a string that must be there and not empty.
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

// text returns a string; "" if it is missing.
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

// texts returns a list of strings.
func (f *fields) texts(name string) []string {
	raw, ok := f.member(name)
	if !ok {
		f.wrong(name, "required")
		return nil
	}

	// Pointers show which elements are null.
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

// flag returns a boolean; false if it is missing.
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

// integer returns a whole number between lo and hi; 0 if it is missing.
func (f *fields) integer(name string, lo, hi int) int {
	// Parse a float first, because 1e3 and 1.0 are whole numbers in JSON.
	raw, ok := f.member(name)
	if !ok {
		return 0
	}

	var n float64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &n) != nil {
		if kindOf(raw) == "a number" { // too large for a float
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

// maxKeyDays limits the life of a key that expires.
const maxKeyDays = 3650

// lifetime returns the time until expiresAt, or expiresInDays; 0 means no end.
func (f *fields) lifetime(now time.Time) time.Duration {
	// Read both, so that neither counts as unknown.
	days := f.integer("expiresInDays", 1, maxKeyDays)
	at := f.text("expiresAt")
	if at == "" {
		return time.Duration(days) * 24 * time.Hour
	}

	// Limit the date: with one wrong digit a key would live for a thousand years.
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
	// The first byte is enough, since the decoder has checked the syntax.
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

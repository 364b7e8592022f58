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

// fields is the JSON object of a request body. Each of its methods decodes one member and collects
// errors, so that one answer names every mistake. A member that no method reads is an error,
// unless allowUnknown is set.
type fields struct {
	raw          map[string]json.RawMessage
	known        []string // names of the members that were read, even if they are missing
	allowUnknown bool
	errs         []string
}

// decodeBody parses a request body, which must be one JSON object.
func decodeBody(body []byte) (*fields, error) {
	// Refuse invalid UTF-8: the JSON library would replace it, and a search would find other files.
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, invalidBody("expected a JSON object, received an empty body")
	}
	if i := invalidUTF8(body); i >= 0 {
		return nil, invalidBody("the body is not valid UTF-8 at byte %d", i)
	}

	// Only split the object into its members. A handler decodes those that it reads.
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

// err returns one failure that names every mistake, sorted by member; nil without a mistake.
func (f *fields) err() error {
	// Sort, because unknown walks over a map, which has no order.
	errs := append(slices.Clone(f.errs), f.unknown()...)
	if len(errs) == 0 {
		return nil
	}
	sort.Strings(errs)
	return invalidBody("%s", strings.Join(errs, "; "))
}

// unknown returns an error for each member that no method has read. It suggests a similar known
// name, or lists the known names.
func (f *fields) unknown() (errs []string) {
	if f.allowUnknown {
		return nil
	}

	for name := range f.raw {
		if slices.Contains(f.known, name) {
			continue
		}

		// A similar known name makes a typing error likely.
		hint := "known are " + strings.Join(f.known, ", ")
		if near := tool.NearestName(name, f.known); near != "" {
			hint = "did you mean " + near + "?"
		}
		errs = append(errs, fmt.Sprintf("%.100s: unknown; %s", name, hint))
	}
	return errs
}

func (f *fields) wrong(name, format string, args ...any) {
	f.errs = append(f.errs, name+": "+fmt.Sprintf(format, args...))
}

// member returns the JSON of a member, and whether it is there and not null. It notes the name as
// known.
func (f *fields) member(name string) (json.RawMessage, bool) {
	if !slices.Contains(f.known, name) {
		f.known = append(f.known, name)
	}
	raw, ok := f.raw[name]
	return raw, ok && string(raw) != "null"
}

// required returns a string member, and reports it as an error if it is missing or empty.
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

// text returns a string member; "" if it is missing or no string.
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

// texts returns a member that must be a list of strings; nil if it is missing or no list.
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

// flag returns a boolean member; false if it is missing or no boolean.
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

// given returns a member as read returns it; nil if it is missing.
func given[T any](f *fields, name string, read func(name string) T) *T {
	if _, ok := f.member(name); !ok {
		return nil
	}
	v := read(name)
	return &v
}

// integer returns a member that must be a whole number from lo to hi; 0 if it is missing or
// invalid.
func (f *fields) integer(name string, lo, hi int) int {
	// Decode a float, because 1e3 and 1.0 are whole numbers in JSON.
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

// maxKeyDays is the longest life of a key that expires, in days.
const maxKeyDays = 3650

// lifetime returns the time from now until expiresAt, or expiresInDays as a duration. 0 means that
// neither is set: no expiry.
func (f *fields) lifetime(now time.Time) time.Duration {
	// Read both members, so that neither counts as unknown.
	days := f.integer("expiresInDays", 1, maxKeyDays)
	at := f.text("expiresAt")
	if at == "" {
		return time.Duration(days) * 24 * time.Hour
	}

	// Limit the date, because one wrong digit could make a key live for a thousand years.
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

// kindOf names the type of a JSON value, for messages.
func kindOf(raw json.RawMessage) string {
	// The first byte tells the type, because the decoder has checked the syntax.
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

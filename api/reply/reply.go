// Package reply is how an answer of the API becomes JSON, and how a client reads it.
//
// The types of answers stand where the answers are made, with tags for the names of
// their fields. They are written as they are:
//
//	browse.RepoInfo  --Encode-->  {"repoName":"github.com/acme/app", ...}  --Decode-->  browse.RepoInfo
//
// A list is never null. A time has whole seconds, and the zero time is the empty text;
// `omitzero` leaves it out. What must not leave has the tag `json:"-"`.
package reply

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Precise writes times with the fractions of their seconds.
var Precise = json.WithMarshalers(json.MarshalFunc(func(t time.Time) ([]byte, error) { return quoted(t, time.RFC3339Nano) }))

// Bytes that are no UTF-8 become U+FFFD. The line ends of JavaScript are escaped, so
// that an answer can stand in a script.
var (
	encoding = json.JoinOptions(
		json.WithMarshalers(json.MarshalFunc(func(t time.Time) ([]byte, error) { return quoted(t, time.RFC3339) })),
		json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.EscapeForJS(true), jsontext.PreserveRawStrings(true),
	)
	decoding = json.JoinOptions(
		json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, t *time.Time) error {
			if *t = (time.Time{}); string(text) == `""` {
				return nil
			}
			return t.UnmarshalJSON(text)
		})),
		json.MatchCaseInsensitiveNames(true), jsontext.AllowInvalidUTF8(true),
	)
)

// Encode returns the JSON of v, in one line.
func Encode(v any, more ...json.Options) ([]byte, error) {
	return json.Marshal(v, append([]json.Options{encoding}, more...)...)
}

// Decode reads the JSON of an answer into what v points to. Fields that v does not have
// are left out.
func Decode(text []byte, v any) error { return json.Unmarshal(text, v, decoding) }

func quoted(t time.Time, layout string) ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return t.AppendFormat(make([]byte, 0, len(layout)+2), `"`+layout+`"`), nil
}

// Package reply converts answers of the API to JSON, and back for clients.
//
// The types of answers are declared where the answers are made, with tags for the names of their
// fields:
//
//	browse.RepoInfo  --Encode-->  {"repoName":"github.com/acme/app", ...}  --Decode-->  browse.RepoInfo
//
// A list is never null. A time has whole seconds, and the zero time is the empty text; `omitzero`
// omits it. The tag `json:"-"` keeps a field out of answers.
package reply

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Precise is an option of Encode that keeps fractions of seconds.
var Precise = json.WithMarshalers(json.MarshalFunc(func(t time.Time) ([]byte, error) { return quoted(t, time.RFC3339Nano) }))

// Invalid UTF-8 becomes U+FFFD. JavaScript's line ends are escaped, so that the JSON can be part of
// a script.
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

// Encode returns the JSON of v on one line.
func Encode(v any, more ...json.Options) ([]byte, error) {
	return json.Marshal(v, append([]json.Options{encoding}, more...)...)
}

// Decode parses JSON into *v. It ignores fields that v does not have.
func Decode(text []byte, v any) error { return json.Unmarshal(text, v, decoding) }

func quoted(t time.Time, layout string) ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return t.AppendFormat(make([]byte, 0, len(layout)+2), `"`+layout+`"`), nil
}

package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

func FuzzText_jsonStringsDecodeToTheirText(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f\x7f", "caf\xe9", "\xff\xfe", "é世\U0001F41F", "\xed\xa0\x80", "\xe4\xb8", "<&>\u2028"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := appendText(nil, raw)
		if same := appendText(nil, string(raw)); string(same) != string(got) {
			t.Fatalf("as bytes %q, as string %q", got, same)
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		var want strings.Builder // each invalid byte becomes one replacement character
		for _, r := range string(raw) {
			want.WriteRune(r)
		}
		if back != want.String() {
			t.Fatalf("%q decodes to %q, want %q", got, back, want.String())
		}
	})
}

func FuzzBody_errorsOfAnyRequestBodyAreReadable(f *testing.F) {
	for _, s := range []string{`{}`, `{"query":"a"}`, `{"a":1e999}`, `[[[`, "\xff", `{"query":"\ud800"}`, `{"n":-0}`, `{"n":5,"b":true,"l":["x",null]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := decodeBody(raw)
		if err != nil {
			return
		}
		b.text("query")
		b.flag("b")
		b.texts("l")
		if n := b.integer("n", 1, 9); n != 0 && (n < 1 || n > 9) {
			t.Fatalf("%q: n = %d", raw, n)
		}
		if err := b.err(); err != nil && !utf8.ValidString(err.Error()) {
			t.Fatalf("%q: message %q", raw, err)
		}
	})
}

func BenchmarkEncodeSearch(b *testing.B) {
	r := searchResponse()
	for range 5 {
		r.Files = append(r.Files, r.Files...)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendSearch(buf[:0], r)
	}
	b.SetBytes(int64(len(buf)))
}

// An error for an unknown member suggests a known one, except in a search.
func TestRequestBody_unknownMemberErrorSuggestsAKnownOne(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true})
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/api/search", `{"query": "a", "somethingNew": 1}`, 200, ""},
		{"/api/tree", `{"repoName": "a", "revisonName": "x", "paths": [""]}`, 400, "revisonName: unknown; did you mean revisionName?"},
		{"/api/find_definitions", `{"symbolName": "a", "zzz": 1}`, 400, "zzz: unknown; known are symbolName, "},
		{"/api/find_definitions", `{"symbolName": "a", "line": 3}`, 400, "line: only beside path"},
		{"/api/find_definitions", `{"symbolName": "a", "path": "x", "column": 3}`, 400, "column: only beside line"},
		{"/api/find_references", `{"symbolName": "a", "pathRepoName": "r"}`, 400, "pathRepoName: only beside path"},
		{"/api/find_references", `{"symbolName": "a", "path": ""}`, 400, "path: must not be empty"},
		{"/api/find_references", `{"symbolName": "a", "limit": 1001}`, 400, "limit: must be between 1 and 1000"},
		{"/api/find_references", `{"symbolName": "a", "path": "x", "line": 1, "column": 2, "limit": 1}`, 200, ""},
		{"/api/keys", `{"name": "a", "expiry": "2020-01-01"}`, 400, "expiry: unknown"},
		{"/api/keys", `{"name": "a", "expiresAt": "2020-01-01T00:00:00Z"}`, 400, "is in the past"},
		{"/api/keys", `{"name": "a", "expiresAt": "tomorrow"}`, 400, "expected a time such as"},
		{"/api/keys", `{"name": "a", "expiresAt": "9999-01-01T00:00:00Z"}`, 400, "within 3650 days"},
		{"/api/keys", `{"name": "a", "expiresAt": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`, 201, ""},
	} {
		resp, body := askAs(t, s, ownerKey, "POST", c.path, c.body)
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s %s: %d %s", c.path, c.body, resp.StatusCode, body)
		}
	}
}

// A request without a body gets no error about its body.
func TestRequestBody_mayBeMissing(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true, err: &nodecall.Error{Kind: nodecall.ErrInvalid, Message: "no"}})
	for _, c := range []struct{ method, path, body, code string }{
		{"GET", "/api/commits?repo=a", "", codeInvalidParams},
		{"DELETE", "/api/keys/ci", "", codeInvalidParams},
		{"POST", "/api/tree", `{"repoName": "a"}`, codeInvalidBody},
	} {
		if resp, got := askAs(t, s, ownerKey, c.method, c.path, c.body); resp.StatusCode != 400 || !strings.Contains(string(got), c.code) {
			t.Errorf("%s: %d %s", c.method, resp.StatusCode, got)
		}
	}
}

func TestChunk_tellsHowMuchOfALineIsCut(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]shard.Chunk{
		`"cut":{"before":9000,"after":7}`: {Content: []byte("x"), Before: 9000, After: 7},
		`"cut":{"before":0,"after":7}`:    {Content: []byte("x"), After: 7},
	} {
		if got := string(appendChunk(nil, &c)); !json.Valid([]byte(got)) || !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if got := string(appendChunk(nil, &shard.Chunk{Content: []byte("x")})); strings.Contains(got, "cut") {
		t.Errorf("whole lines: %s", got)
	}
}

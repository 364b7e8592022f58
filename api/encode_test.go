package api

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzText(f *testing.F) {
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
		var want strings.Builder // each bad byte becomes one replacement character
		for _, r := range string(raw) {
			want.WriteRune(r)
		}
		if back != want.String() {
			t.Fatalf("%q decodes to %q, want %q", got, back, want.String())
		}
	})
}

func FuzzBody(f *testing.F) {
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
		if n := b.integer("n", 3, 1, 9); n < 1 || n > 9 {
			t.Fatalf("%q: n = %d", raw, n)
		}
		if err := b.err(); err != nil && !utf8.ValidString(err.Error()) {
			t.Fatalf("%q: message %q", raw, err)
		}
	})
}

func BenchmarkSearchEncode(b *testing.B) {
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

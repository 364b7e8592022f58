package main

import (
	"bufio"
	"strings"
	"testing"
)

// On a terminal no character of a repository is hidden, moves the cursor or reverses text.
func TestPrinter_showsHiddenCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext": "plain\ttext", "a\x1b[31mb": "a\uFFFD[31mb", "a\u202eb": "a\uFFFDb", "a\u200bb": "a\uFFFDb", "a\u2028b": "a\uFFFDb", "क्\u200dष": "क्\u200dष",
	} {
		var out strings.Builder
		p := &printer{out: bufio.NewWriter(&out), terminal: true}
		if got := p.sanitize(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]string{"a b.go": "a b.go", "a\u202eog.b": `"a\u202eog.b"`, "a\nb": `"a\nb"`, "a\tb": `"a\tb"`, "größe": "größe"} {
		if got := oneLine(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

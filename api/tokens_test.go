package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Colours are given in characters of the sent text, for a part of a file as for the whole, and
// only on request.
func TestSyntaxColours_areCountedInCharactersOfTheSentText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{
		"main.go":  "package main // ü\r\n\n/* 𝔸 \xe9\nfunc x() */ var é = \"a\xff𝔸\" + 12\n",
		"long.go":  "/*\n" + strings.Repeat("in a comment, said at some length to fill the line\n", 8000) + "*/ func x() {}\n",
		"ends.go":  strings.Repeat("\n", 300<<10),
		"wide.go":  "/*\n" + strings.Repeat("w", 20<<20) + "\n" + strings.Repeat("w", 20<<20) + "\n*/\nfunc x() {}\n",
		"none.txt": " ", "x.bin": "\x00\x01func",
	})
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "off" },
		File: `{"settings": {"enablePublicAccess": true}, "connections": {"local": {"type": "git", "url": "file://` + dir + `/*"}}}`,
	})
	n.WaitIndexed(1)
	s := start(t, partsOf(n.Node))

	type answer struct {
		Source             string
		StartLine          int
		Tokens             *[][]tokenJSON
		AreTokensTruncated *bool
	}
	read := func(path, more string) answer {
		t.Helper()
		got := fetch(t, s, "GET", "/api/source?repo=local/app&path="+url.QueryEscape(path)+more)
		var a answer
		if err := json.Unmarshal([]byte(got.body), &a); err != nil || got.status != 200 {
			t.Fatalf("%s%s: %d %.300s", path, more, got.status, got.body)
		}
		return a
	}

	// words returns the runs with their text, cut out of the answer as a client does.
	words := func(a answer) (out [][]string) {
		lines := strings.Split(a.Source, "\n")
		for i, row := range *a.Tokens {
			found := []string{}
			for _, k := range row {
				found = append(found, k.Class+" "+string([]rune(lines[i])[k.Start:k.End]))
			}
			out = append(out, found)
		}
		return out
	}
	want := [][]string{
		{"keyword package", "comment // ü"}, {}, {"comment /* 𝔸 \ufffd"},
		{"comment func x() */", "keyword var", "string \"a\ufffd𝔸\"", "number 12"},
	}
	whole := read("main.go", "&tokens=true")
	if got := words(whole); !reflect.DeepEqual(got, want) || *whole.AreTokensTruncated {
		t.Errorf("%q, want %q", got, want)
	}

	// A part has the colours of the whole: for example, a comment may have begun before it.
	for first := 1; first <= 4; first++ {
		part := read("main.go", fmt.Sprintf("&tokens=1&startLine=%d", first))
		if got := words(part); part.StartLine != first || !reflect.DeepEqual(got, want[first-1:]) {
			t.Errorf("from line %d: %q, want %q", first, got, want[first-1:])
		}
	}
	if got := words(read("main.go", "&tokens=true&startLine=3&endLine=3")); !reflect.DeepEqual(got, want[2:3]) {
		t.Errorf("line 3: %q", got)
	}
	if got := words(read("wide.go", "&tokens=true&startLine=5")); !reflect.DeepEqual(got, [][]string{{"keyword func"}}) {
		t.Errorf("after lines that are too long to be read for it: %q", got)
	}

	// A long file only has colours at its beginning, and the answer says so.
	for path, most := range map[string]int{"long.go": (256 << 10) / 51, "ends.go": 256 << 10} {
		long := read(path, "&tokens=true")
		if got := len(*long.Tokens); got < most-2 || got > most+2 || !*long.AreTokensTruncated {
			t.Errorf("%s: tokens of %d lines, want about %d; cut %t", path, got, most, *long.AreTokensTruncated)
		}
	}
	rest := words(read("long.go", "&tokens=true&startLine=8001"))
	if !reflect.DeepEqual(rest, [][]string{{"comment in a comment, said at some length to fill the line"}, {"comment */", "keyword func"}}) {
		t.Errorf("the end of a long file: %q", rest)
	}
	for path, lines := range map[string]int{"none.txt": 1, "x.bin": 0} {
		if a := read(path, "&tokens=true"); a.Tokens == nil || len(*a.Tokens) != lines || *a.AreTokensTruncated {
			t.Errorf("%s: %v", path, a.Tokens)
		}
	}

	// Without a request the answer has no colours.
	for _, more := range []string{"", "&tokens=false", "&tokens=0"} {
		if a := read("main.go", more); a.Tokens != nil || a.AreTokensTruncated != nil {
			t.Errorf("%q: tokens %v that nobody asked for", more, a.Tokens)
		}
	}
	if got := fetch(t, s, "GET", "/api/source?repo=local/app&path=main.go&tokens=perhaps"); failureOf(t, "tokens", got.status, []byte(got.body)) != codeInvalidParams {
		t.Errorf("%d %s", got.status, got.body)
	}
}

package difftest

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// newText returns a file with a text.
func newText(raw string) *file {
	return (&twin{}).newFile(&animal{name: "local/a"}, "a.txt", "100644", "", []byte(raw))
}

func TestReferenceScan_decodesFilesByTheirByteOrderMark(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"a\n": "a\n", "\xef\xbb\xbfa\n": "a\n", "\xff\xfea\x00\n\x00": "a\n", "\xfe\xff\x00a\x00\n": "a\n", wide32("aé", binary.BigEndian): "aé", wide32("a", binary.LittleEndian): "a", "a\xe9": "a\xe9", "\xff\xfea\x00b": "a\ufffd",
	} {
		if f := newText(raw); f.text != want || f.binary {
			t.Errorf("%q is %q, binary %v; want %q", raw, f.text, f.binary, want)
		}
	}
	if !newText("a\x00").binary || newText(wide16("a", binary.LittleEndian)).binary {
		t.Error("a NUL makes a file binary, unless a mark says what it is")
	}
}

func TestReferenceScan_findsLinesAndColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, expr, want string }{
		{"one\ntwo\n", "two", "2:1"}, {"one\r\ntwo\r\n", "one$", "1:1"}, {"one\r\ntwo\r\n", `one\ntwo`, "1:1"}, {"a\r\nb\r\nc", "c", "3:1"}, {"é two", "two", "1:3"}, {"\xef\xbb\xbfone", "^one", "1:1"}, {"one", "x*", ""}, {"a\rb", "^b", ""},
	} {
		f := newText(c.raw)
		got := ""
		for _, s := range f.find(compiled(c.expr, false)) {
			got += fmt.Sprintf("%d:%d", f.line(s.from), f.column(s.from))
		}
		if got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.expr, c.raw, got, c.want)
		}
	}
}

func TestReferenceScan_matchesWithinOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw, expr string
		want      []int
	}{
		{"a\nb\n", "a[^x]b", nil}, {"a\nb\n", `a\nb`, []int{1, 2}}, {"a\nb\n", "(?s)a.b", []int{1, 2}}, {"a\r\nb\r\n", "a$", []int{1}}, {"a\r\nb", `a\n`, []int{1}}, {"xa\nay", "^a", []int{2}},
	} {
		got, _ := grepLines(newText(c.raw), c.expr, false)
		for _, n := range c.want {
			if !got[n] {
				t.Errorf("%q in %q lacks line %d", c.expr, c.raw, n)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%q in %q: %v, want %v", c.expr, c.raw, got, c.want)
		}
	}
}

func TestReferenceScan_matchesGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, dir, path string
		want            bool
	}{
		{"*.go", "", "a/b.go", true}, {"/*.go", "", "a/b.go", false}, {"a/*.go", "", "a/b.go", true}, {"a", "", "a/b.go", true}, {"[a].go", "", "[a].go", true}, {"*.go", "x", "a/b.go", false}, {"b/*", "a", "a/b/c", true}, {"*.go", "a/b.go", "a/b.go", true},
	} {
		if got := globbed(c.glob, c.dir, c.path); got != c.want {
			t.Errorf("%q in %q takes %q: %v", c.glob, c.dir, c.path, got)
		}
	}
}

func TestReferenceScan_findsWholeWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, word string
		want       int
	}{
		{"un café noir", "café", 1}, {"un café noir", "caf", 0}, {"C++ and C++11", "c++", 1}, {"#include <x>", "#include", 1}, {"foo() foo()x", "foo()", 1}, {"aa a", "a", 1}, {"aba ab", "ab", 1}, {"検索 検索x", "検索", 1},
	} {
		if got := wholeWords(c.text, c.word); got != c.want {
			t.Errorf("%q in %q: %d, want %d", c.word, c.text, got, c.want)
		}
	}
}

// Wrong answers are noticed: one with a match, line, file or commit too few, and one that was cut
// but claims to be complete.
func TestReferenceScan_detectsWrongAnswers(t *testing.T) {
	t.Parallel()
	f := newText("needle\nneedle\n")
	w := &twin{repos: []*animal{f.repo}}
	f.repo.refs = []ref{{name: "refs/heads/main", commit: "1", files: []*file{f}}}
	grep := toolCall{name: "grep", args: map[string]any{"pattern": "needle", "repo": "local/a"}}
	glob := toolCall{name: "glob", args: map[string]any{"pattern": "*.txt", "repo": "local/a"}}
	read := toolCall{name: "read_file", args: map[string]any{"repo": "local/a", "path": "a.txt"}}
	for _, c := range []struct {
		call    toolCall
		is      func(toolCall, *twin, string) verdict
		answer  string
		correct bool
	}{
		{grep, isGrep, "2 matching lines in 1 file\na.txt\n1: needle\n2: needle\nComplete.", true},
		{grep, isGrep, "At least 1 matching line in 1 file\na.txt\n1: needle\nLeft out: more.", true},
		{grep, isGrep, "1 matching line in 1 file\na.txt\n1: needle\nComplete.", false},
		{grep, isGrep, "2 matching lines in 1 file\na.txt\n1: needle\n3: needle\nComplete.", false},
		{grep, isGrep, "2 matching lines in 1 file\nb.txt\n1: needle\n2: needle\nComplete.", false},
		{grep, isGrep, "No line matches.\nComplete.", false},
		{glob, isGlob, "1 file\na.txt\nComplete.", true},
		{glob, isGlob, "No file matches.\nComplete.", false},
		{glob, isGlob, "1 file\nb.txt\nComplete.", false},
		{read, isReadFile, "a.txt at 1, Text, lines 1-2 of 2\n1: needle\n2: needle\nEnd of file.", true},
		{read, isReadFile, "a.txt at 1, Text, lines 1-1 of 1\n1: needle\nEnd of file.", false},
		{read, isReadFile, "a.txt at 1, Text, lines 1-2 of 2\n1: needle\n2: noodle\nEnd of file.", false},
	} {
		if v := c.is(c.call, w, c.answer); (v.amiss == "") != c.correct {
			t.Errorf("%s: %q", c.answer, v.amiss)
		}
	}
}

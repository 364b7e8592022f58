package paths

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// globPaths are paths that globs of the tests are tried with.
var globPaths = []string{
	"a", "b", "a.go", "a/b", "a/b.go", "a/b/c", "a/b/c.go", "x/a.go", "x/y/z/a.go", ".hidden", "a/.b", "a-b", "a]b", "[a]", "a*b", "{a}",
	"größe", "a\nb", "a/b\nc.go", "A.go", "a,b", "src/evict.c", "src/a/b/c/d.ts", "^", "-",
}

func sameAsDoublestar(t *testing.T, glob, path string) {
	t.Helper()
	if !utf8.ValidString(glob) || !utf8.ValidString(path) || path == "" { // no file has an empty path
		return
	}
	expr, err := globExpr(glob)
	if err != nil {
		if doublestar.ValidatePattern(glob) && len(glob) < 100 {
			t.Logf("%q: %v", glob, err)
		}
		return
	}
	re, err := regexp.Compile("^" + expr + "$")
	if err != nil {
		t.Fatalf("%q: %q: %v", glob, expr, err)
	}
	want, err := doublestar.Match(glob, path)
	if err != nil {
		return
	}
	got := re.MatchString(path)
	if want && !got && strings.Contains(path, "\n") {
		return // * and ? match no line break here
	}
	if got != want {
		t.Errorf("%q of %q: %t by %q, doublestar says %t", glob, path, got, expr, want)
	}
}

func TestGlobsAreThoseOfDoublestar(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{
		"", "*", "**", "**/*", "*.go", "**/*.go", "a/**", "a/**/*.go", "a/*", "**/a.go", "x/**/a.go", "?", "??", "[ab]", "[!ab]", "[^a]*", "[a-c].go",
		"{a,b}", "{a,x/**}", "{*.go,*.c}", "src/**/*.{ts,c}", "{a,{b,c}}/b", "a**b", "a**", "**b", "a/**b", `\[a\]`, `a\*b`, `\{a\}`, "[]]", "a[]]b", "[-]", `[\^]`,
		"a{,.go}", "{**/,}a.go", "größe", "gr?ße", "gr[ö]ße", "[a-]", "a/{b,c}{,.go}",
	} {
		for _, path := range globPaths {
			sameAsDoublestar(t, glob, path)
		}
	}
}

func FuzzGlobExpr(f *testing.F) {
	f.Add("src/**/*.{ts,c}", "src/a/b.c")
	f.Add("[!a-c]{x,[}]}", "dx")
	f.Fuzz(func(t *testing.T, glob, path string) {
		if len(glob) > 60 || len(path) > 60 {
			return
		}
		sameAsDoublestar(t, glob, path)
	})
}

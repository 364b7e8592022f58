package paths

import (
	"regexp"
	"slices"
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
	plain, ok := withoutBraces(glob)
	switch {
	case !ok:
		t.Fatalf("%q stands for too many globs", glob)
	case got && !want:
		want = oneMatches(plain, path)
	case want && !got && slices.ContainsFunc(plain, endsInTwoStars):
		return
	case want && !got && strings.Contains(glob, "[") && strings.Contains(path, "/"):
		return // classes have no slash here
	}
	if got != want {
		t.Errorf("%q of %q: %t by %q, doublestar says %t", glob, path, got, expr, want)
	}
}

// oneMatches tells whether doublestar says that a path is matched by one of the globs
// that a glob with braces stands for, or by one of these without its last stars. Of the
// glob itself it says no where a star has come to the end of the path and what follows,
// braces or more stars, may be empty.
func oneMatches(plain []string, path string) bool {
	return slices.ContainsFunc(plain, func(p string) bool {
		for {
			if doublestar.MatchUnvalidated(p, path) {
				return true
			}
			runs := slices.DeleteFunc(stars.FindAllStringIndex(p, -1), func(r []int) bool { return wholePart(p, r[0], r[1]) })
			if len(runs) == 0 {
				return false
			}
			last := runs[len(runs)-1]
			p = p[:last[0]] + p[last[1]:]
		}
	})
}

var stars = regexp.MustCompile(`\*+`)

// wholePart tells the two stars that stand for directories. Stars that are themselves,
// behind a backslash, are left in place too.
func wholePart(glob string, from, to int) bool {
	begins, ends := from == 0 || glob[from-1] == '/', to == len(glob) || glob[to] == '/'
	return from > 0 && glob[from-1] == '\\' || to-from == 2 && begins && ends
}

// endsInTwoStars is of globs such as x**/, whose stars are no whole part of the path: it
// is x*/, which x is not, though doublestar says so. Of xa it says no.
func endsInTwoStars(glob string) bool {
	before, ok := strings.CutSuffix(glob, "**/")
	return ok && before != "" && !strings.HasSuffix(before, "/")
}

// A class stands for a letter of a name, whatever it lists.
func TestAClassHasNoSlash(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{"a[!b]c", "a[^b]c", "a[/]c", "a[.-0]c", "a[+-9]c", "a[/-0]c", "a[.-/]c", `a[\/x]c`} {
		expr, err := globExpr(glob)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile("^" + expr + "$").MatchString("a/c") {
			t.Errorf("%s matches a/c by %s", glob, expr)
		}
	}
	for _, path := range []string{"a", "a.", "a0", "a+", "a9"} {
		sameAsDoublestar(t, "a[+-9]", path)
	}
}

// What may follow a star may be nothing: a brace that has an empty alternative.
func TestABraceBehindAStarMayBeEmpty(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{"a*{}", "a*{,.bak}", "a*{.bak,}", "a*{*}", "a*{{},x}", "a{*{,x},y}"} {
		expr, err := globExpr(glob)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile("^" + expr + "$").MatchString("a") {
			t.Errorf("%s does not match a", glob)
		}
	}
}

func TestGlobsAreThoseOfDoublestar(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{
		"", "*", "**", "**/*", "*.go", "**/*.go", "a/**", "a/**/*.go", "a/*", "**/a.go", "x/**/a.go", "?", "??", "[ab]", "[!ab]", "[^a]*", "[a-c].go",
		"{a,b}", "{a,x/**}", "{*.go,*.c}", "src/**/*.{ts,c}", "{a,{b,c}}/b", "a**b", "a**", "**b", "a/**b", `\[a\]`, `a\*b`, `\{a\}`, "[]]", "a[]]b", "[-]", `[\^]`,
		"a{,.go}", "{**/,}a.go", "größe", "gr?ße", "gr[ö]ße", "[a-]", "a/{b,c}{,.go}", "a*{}", "a*{,.go}", "a/**{,/c}", "a/**/", "a/{**/,x}", "**a/**/",
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

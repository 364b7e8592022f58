package glob

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/glob/globtest"
)

func TestGlob_matchesTheNamesOfEachExample(t *testing.T) {
	t.Parallel()
	for _, row := range globtest.Rows() {
		g, err := Compile(Exact, row.Pattern)
		if wrong := row.Wrong(g.Match); err != nil || wrong != nil {
			t.Errorf("%s is wrong of %q: %v", row.Pattern, wrong, err)
		}
		folded, err := Compile(Fold, strings.ToUpper(row.Pattern))
		if err != nil && !strings.Contains(row.Pattern, "[:") {
			t.Errorf("%s in upper case: %v", row.Pattern, err)
		}
		for _, name := range row.Matches {
			if !strings.ContainsAny(row.Pattern, "!^:{") && !folded.Match(name) {
				t.Errorf("%s in upper case does not match %s", row.Pattern, name)
			}
		}
	}
}

// An expression matches the same names as its pattern, except for the text of the pattern itself,
// such as [a].
func TestGlobExpression_matchesTheSameNamesAsItsGlob(t *testing.T) {
	t.Parallel()
	for _, row := range globtest.Rows() {
		agrees(t, row.Pattern, slices.Concat(row.Matches, row.Others)...)
	}
	names := []string{"a", "b", "a.go", "a/b.go", "a/b/c", ".hidden", "a-b", "a]b", "[a]", "a*b", "{a}", "größe", "a\nb", "a/b\nc.go", "a,b", "^", "-", "a/c", "a.c", "a0c", "\xff", ""}
	for _, pattern := range []string{
		"", "[]]", "a[]]b", "[-]", `[\^]`, "a{,.go}", "{**/,}a.go", "gr?ße", "gr[ö]ße", "[a-]", "a/{b,c}{,.go}", "a*{}", "a/**{,/c}", "a[!b]c", "a[/]c", "a[.-0]c", "a[+-9]c", `a[\/x]c`, "\xff", "[^a]",
	} {
		agrees(t, pattern, names...)
	}
}

func agrees(t *testing.T, pattern string, names ...string) {
	t.Helper()
	g, err := Compile(Exact, pattern)
	if err != nil {
		return
	}
	expr, err := Expr(pattern)
	if says := strings.HasPrefix(pattern, "!") || strings.Contains(pattern, "!("); err != nil && says {
		return
	}
	re, err2 := regexp.Compile(`\A` + expr + `\z`)
	if err != nil || err2 != nil {
		t.Errorf("%q: %v %v", pattern, err, err2)
		return
	}
	for _, name := range names {
		if re.MatchString(name) != g.Match(name) && name != pattern && utf8.ValidString(pattern) {
			t.Errorf("%q of %q: %t by %s", pattern, name, !g.Match(name), expr)
		}
	}
}

func TestSplit_ignoresCommasInGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a": {"a"}, "a,b": {"a", "b"}, " *.go , {a,b}/[,] ,": {"*.go", "{a,b}/[,]", ""}, `a\,b,c`: {`a\,b`, "c"}, "a,{b": {"a,{b"}, "": {""}, "@(a,b|c),d": {"@(a,b|c)", "d"},
	} {
		if got := Split(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGlob_refusesInvalidPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"[": "no ]", "[a": "no ]", "a{b": "no }", "{a,b": "no }", "@(a": "no )", "!(a": "no )", `a\`: "backslash",
		"{1..9999}": "range", "[z-a]": "before it begins", strings.Repeat("a", 5000): "4096",
		strings.Repeat("@(", 40) + strings.Repeat(")", 40): "32 deep", strings.Repeat("{1..1000}", 100): "too large",
	} {
		if _, err := Compile(Exact, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", pattern, err, want)
		}
	}
}

func TestGlobList_matchesIfAnyPatternMatches(t *testing.T) {
	t.Parallel()
	g, err := Compile(Exact, "a", "b")
	if err != nil || !g.Match("b") || g.Match("c") || g.Empty() || !g.MatchAny([]string{"c", "a"}) {
		t.Errorf("a and b: %v", err)
	}
	if none := (Globs{}); !none.Empty() || none.Match("a") || none.Match("") {
		t.Error("no pattern matches something")
	}
	if g, err = Compile(Exact, "a\n*"); err != nil || !g.Match("a\nb") || g.Match("a\nb/c") {
		t.Error("a line break is no character")
	}
	if g, err = Compile(Exact, "\xff?"); err != nil || !g.Match("\xff\xfe") || g.Match("\xfe\xfe") {
		t.Error("bytes that are not UTF-8 are one")
	}
}

func TestGlobStart_isTheTextThatEveryMatchBeginsWith(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"/srv/git/@(a|b)": "/srv/git/", "/srv/+(a)": "/srv/", "team/**": "team/", "a/**/b": "a/", "!a/*": "", "{a,b}": "", "a/b (old)": "a/b (old)=", `a\*b`: "a*b=", "a(b|c)": "a",
	} {
		text, all := Start(pattern)
		if all {
			text += "="
		}
		if text != want {
			t.Errorf("%s begins with %q, want %q", pattern, text, want)
		}
	}
}

// A hostile pattern costs no more than its length times the length of the name.
func TestGlob_hostilePatternsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", 300) + "!"
	start := time.Now()
	for _, pattern := range []string{
		strings.Repeat("*a", 500) + "b", strings.Repeat("a*", 500) + "b", strings.Repeat("**/", 500) + "b",
		strings.Repeat("+(", 30) + "a" + strings.Repeat(")", 30) + "b", strings.Repeat("*(a|", 30) + "a" + strings.Repeat(")", 30) + "b",
		strings.Repeat("!(", 30) + "a*" + strings.Repeat(")", 30) + "b", strings.Repeat("!(a)", 500) + "b",
		strings.Repeat("{a,aa}", 300) + "b", strings.Repeat("?(a)", 500) + strings.Repeat("a", 500) + "b", "+(a|aa|a?|+(a*))b", strings.Repeat("(", 2000),
		strings.Repeat("{a,", 30) + strings.Repeat("}", 30) + strings.Repeat("{1..999}", 4),
	} {
		g, err := Compile(Fold, pattern)
		if err == nil && g.Match(name) && !strings.HasPrefix(pattern, "!") {
			t.Errorf("%.20s matches", pattern)
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func FuzzGlob_equalsANaiveMatcher(f *testing.F) {
	for _, s := range []string{"**/a", "{a,{b,c}}", "[!a-z]*", "@(a|b)", "!x", `\`, "v{1..3}", "[[:alpha:]]", "!(a)*", "{**,a}/b"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if g, err := Compile(Fold, pattern); err == nil {
			g.Match(name)
			if len(pattern) < 60 && len(name) < 60 && utf8.ValidString(name) {
				agrees(t, pattern, name)
			}
		}
	})
}

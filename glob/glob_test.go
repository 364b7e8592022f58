package glob

import (
	_ "embed"
	"strings"
	"testing"
	"time"
)

// Each row is a pattern, the names that it matches and those that it does not.
// micromatch 4.0.8 with its option "dot" answers alike, but for [!a], {a}, ranges of
// numbers, and ** in braces.
//
//go:embed testdata/table.txt
var table string

func TestGlobs_table(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(table) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		g, err := Compile(Exact, row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
		folded, err := Compile(Fold, strings.ToUpper(row[0]))
		if err != nil && !strings.Contains(row[0], "[:") {
			t.Errorf("%s in upper case: %v", row[0], err)
		}
		for i, names := range row[1:] {
			for name := range strings.FieldsSeq(names) {
				if want := i == 0; g.Match(name) != want {
					t.Errorf("%s matches %s: %t", row[0], name, !want)
				}
				if i == 0 && !strings.ContainsAny(row[0], "!^:{") && !folded.Match(name) {
					t.Errorf("%s in upper case does not match %s", row[0], name)
				}
			}
		}
	}
}

func TestGlobs_refused(t *testing.T) {
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

func TestGlobs_several(t *testing.T) {
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

func TestStart(t *testing.T) {
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

// A pattern of a stranger costs no more than its length times that of a name.
func TestGlobs_hostile(t *testing.T) {
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

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"**/a", "{a,{b,c}}", "[!a-z]*", "@(a|b)", "!x", `\`, "v{1..3}", "[[:alpha:]]", "!(a)*", "{**,a}/b"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if g, err := Compile(Fold, pattern); err == nil {
			g.Match(name)
		}
	})
}

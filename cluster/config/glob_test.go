package config

import "testing"

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"main", "main", true},
		{"main", "maintenance", false},
		{"*", "a", true},
		{"*", "a/b", false},
		{"*", ".github", true},
		{"**", "a/b/c", true},
		{"**", "", true},
		{"a/**", "a/b/c", true},
		{"a/**", "a", true},
		{"a/**", "ab", false},
		{"**/b", "b", true},
		{"**/b", "a/x/b", true},
		{"**/b", "ab", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a**", "ab/c", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"a?c", "aéc", true},
		{"github.com/org/*", "github.com/org/repo.js", true},
		{"github.com/org/*", "githubXcom/org/repo", false},
		{"v[0-9]*", "v1.2", true},
		{"v[!0-9]*", "v1.2", false},
		{"v[^0-9]", "v/", false},
		{"[]]", "]", true},
		{"[[a]", "[", true},
		{"[[:digit:]a]", "7", true},
		{`[\]]`, "]", true},
		{"{a,b/*}", "b/c", true},
		{"{a,b{1,2}}", "b2", true},
		{"{a,b}", "c", false},
		{"v{8..11}", "v10", true},
		{"v{8..11}", "v12", false},
		{"@(a|b)c", "bc", true},
		{"?(a)c", "c", true},
		{"+(ab)", "abab", true},
		{"+(ab)", "", false},
		{"*(a|b)", "", true},
		{"!a", "b", true},
		{"!a", "a", false},
		{"!!a", "a", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"a+b(c)|d", "a+b(c)|d", true},
		{"é*", "école", true},
		{"", "", true},
		{"", "a", false},
		{"a,b", "a,b", true},
		{"a\n*", "a\nb", true},
	} {
		g, err := CompileGlobs([]string{tt.glob})
		if err != nil {
			t.Errorf("%q: %v", tt.glob, err)
		} else if got := g.Match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.glob, tt.name, got)
		}
	}
	for _, bad := range []string{"[", "[a", "a{b", "@(a", "!(a)", `a\`, "{1..9999}", "[z-a]"} {
		if _, err := CompileGlobs([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	g, err := CompileGlobs([]string{"a", "b"})
	if err != nil || !g.Match("b") || g.Match("c") || g.Empty() || !(Globs{}).Empty() || (Globs{}).Match("a") {
		t.Errorf("several globs: %v", err)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"**/a", "{a,{b,c}}", "[!a-z]*", "@(a|b)", "!x", `\`, "v{1..3}", "[[:alpha:]]"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if g, err := CompileGlobs([]string{pattern}); err == nil {
			g.Match(name)
		}
	})
}

package paths

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/glob/globtest"
	"github.com/shoalsearch/shoal/node/call"
)

// Include, exclude and the pattern of the tool glob accept the dialect of package glob, except for
// !(...).
func TestPathFilter_acceptsTheGlobDialect(t *testing.T) {
	t.Parallel()
	for _, row := range globtest.Rows() {
		rest, not := cutNegation(row.Pattern)
		if !strings.Contains(rest, "/") || strings.HasSuffix(rest, "/") || !strings.ContainsAny(rest, signs) {
			continue // these match more paths here
		}
		include, exclude := Filter{Include: []string{row.Pattern}}, Filter{Exclude: []string{rest}}
		if strings.Contains(rest, "!(") {
			if _, err := include.Exprs(); !errors.Is(err, call.ErrInvalid) || !strings.Contains(err.Error(), "exclude") {
				t.Errorf("%s: %v, want a refusal that says what to do", row.Pattern, err)
			}
			continue
		}
		of, err := OfGlob("", row.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		pattern, err := of.Keeps()
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(row.Wrong(func(n string) bool { return keeps(t, include, n) }), row.Wrong(func(n string) bool { return keeps(t, exclude, n) == not }), row.Wrong(pattern))
		if len(all) > 0 {
			t.Errorf("%s is wrong of %q", row.Pattern, all)
		}
	}
}

// A path with special characters of globs matches itself.
func TestPathFilter_matchesALiteralPathWithSpecialCharacters(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"app/(group)/page.tsx", "app/[id]/page.tsx", "app/(a|b)/x", "app/@(modal)/x", "app/{x}/y", "a[b", "src/(.)photo/p.tsx", "+page(x).svelte"} {
		of, err := OfGlob("", path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if keep, err := of.Keeps(); err != nil || !keep(path) || keep("other") || !keeps(t, Filter{Include: []string{path}}, path) || !keeps(t, Filter{Include: []string{"/" + path}}, path) {
			t.Errorf("%s does not stand for itself: %v", path, err)
		}
	}
	if !keeps(t, Filter{Include: []string{"app/(group)/*.tsx"}}, "app/(group)/page.tsx") || keeps(t, Filter{Include: []string{"app/(group)/*.tsx"}}, "app/group/page.tsx") {
		t.Error("parentheses without a bar are more than themselves")
	}
}

// A ! in front excludes, both in a list and alone.
func TestGlobFilter_exclamationMarkExcludes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dir, pattern, path string }{
		{"", "*.go,!*_test.go", "a.go"}, {"", "!*_test.go", "x/a.go"}, {"x", "!*_test.go", "x/a.go"}, {"", "!!*.go", "a.go"},
	} {
		of, err := OfGlob(c.dir, c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := of.Keeps()
		if err != nil || !keep(c.path) || keep("x/a_test.go") != (c.pattern == "!!*.go") || c.dir != "" && keep("y/a.go") {
			t.Errorf("%q in %q: %v", c.pattern, c.dir, err)
		}
	}
}

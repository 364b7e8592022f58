package suggest

import (
	"slices"
	"testing"
	"testing/quick"
)

func TestNearPaths(t *testing.T) {
	t.Parallel()
	paths := []string{"src/dict.c", "src/dict.h", "tests/dict.c", "deps/lua/src/ldo.c", "README.md", "docs/guide.md", "a/b/guide.md", "docs/Übersicht.md"}
	for _, c := range []struct {
		missing string
		want    []string
	}{
		{"dict.c", []string{"src/dict.c", "tests/dict.c", "src/dict.h"}},           // without its directory
		{"deps/dict.c", []string{"src/dict.c", "tests/dict.c", "src/dict.h"}},      // in another directory
		{"old/tests/dict.c", []string{"tests/dict.c", "src/dict.c", "src/dict.h"}}, // the directories decide between equal names
		{"src/dcit.c", []string{"src/dict.c", "tests/dict.c"}},                     // two letters swapped
		{"src/dict2.c", []string{"src/dict.c", "tests/dict.c"}},                    // one letter too many
		{"docs/GUIDE.md", []string{"docs/guide.md", "a/b/guide.md"}},               // letters of the other case
		{"src/nothing_like_it.c", nil},
	} {
		if got := nearPaths(paths, c.missing); !slices.Equal(got, c.want) {
			t.Errorf("near %s: %q, want %q", c.missing, got, c.want)
		}
	}
	if got := nearPaths(directoriesOf(paths), "lua/scr"); !slices.Equal(got, []string{"src", "deps/lua/src"}) && !slices.Equal(got, []string{"deps/lua/src", "src"}) {
		t.Errorf("near directories: %q", got)
	}
}

// plainDistance is distance by its definition.
func plainDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return plainDistance(a[1:], b[1:])
	}
	d := 1 + min(plainDistance(a[1:], b), plainDistance(a, b[1:]), plainDistance(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, 1+plainDistance(a[2:], b[2:]))
	}
	return d
}

func TestDistance_isTheFewestChanges(t *testing.T) {
	t.Parallel()
	few := func(s []byte) string {
		for i := range s {
			s[i] = 'a' + s[i]%3
		}
		return string(s[:min(len(s), 6)])
	}
	same := func(a, b []byte) bool {
		x, y := few(a), few(b)
		return distance(x, y, 9) == plainDistance(x, y)
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

package suggest

import (
	"slices"
	"testing"
)

func TestNearPaths_suggestsSimilarPaths(t *testing.T) {
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
		{"docs/GUIDE.md", []string{"docs/guide.md", "a/b/guide.md"}},               // letters in the other case
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

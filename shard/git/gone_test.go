package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// For a missing path, the answer names the commit that removed it, the last commit with it, and the
// new name of a renamed file. The cases have files, directories, merged branches, and paths that
// were removed more than once.
func TestRemovedPath_namesTheCommitThatRemovedIt(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	text := strings.Repeat("a line that stays\n", 20)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "begin", "a", text, "twice", "1\n", "dir/x", "x\n", "dir/y", "y\n", "place", "p\n")
	h.commit("refs/heads/main", 2, "Bob", "remove once", "twice", "D")
	h.commit("refs/heads/main", 3, "Bob", "again", "twice", "2\n")
	h.commit("refs/heads/main", 4, "Bob", "remove twice", "twice", "D", "other", "3\n")
	h.commit("refs/heads/main", 5, "Cleo", "rename", "a", "D", "sub/new\n\xffname", text+"more\n")
	h.commit("refs/heads/main", 6, "Ann", "remove a directory", "dir/x", "D", "dir/y", "D")
	h.commit("refs/heads/main", 7, "Ann", "a directory in its place", "place", "D", "place/deep", "d\n")
	h.commit("refs/heads/main", 8, "Ann", "unrelated", "other", "4\n")
	r.load(h)
	base := r.git("rev-parse", "main")

	// One branch removes what the other keeps, and the merge takes the removal.
	h = &stream{}
	fmt.Fprintf(h, "reset refs/heads/side\nfrom %s\n\nreset refs/heads/main\nfrom %s\n\n", base, base)
	h.commit("refs/heads/side", 9, "Dan", "on the side", "other", "D")
	h.commit("refs/heads/main", 10, "Ann", "on main", "new", "n\n")
	r.load(h)
	tree := r.git("rev-parse", "refs/heads/side^{tree}")
	merge := r.git("commit-tree", "-p", "main", "-p", "side", "-m", "merge", tree)
	r.git("update-ref", "refs/heads/main", merge)
	m := fetched(t, r.url())

	head, root := r.git("rev-parse", "main"), r.git("rev-parse", base+"~7")
	for _, tt := range []struct{ commit, path, want string }{
		{head, "twice", "remove twice after again, was 0, now "},
		{r.git("rev-parse", base+"~6"), "twice", "remove once after begin, was 0, now "},
		{head, "a", "rename after remove twice, was 0, now sub/new\n\xffname"},
		{head, "/a", "rename after remove twice, was 0, now sub/new\n\xffname"},
		{head, "dir", "remove a directory after rename, was 3, now "},
		{head, "dir/x", "remove a directory after rename, was 0, now "},
		{head, "other", "on the side after unrelated, was 0, now "},
		{head, "new", "nothing"}, // git log agrees: if a merge equals one parent, it follows only that one
		{head, "never", "nothing"},
		{head, "place/deep/er", "nothing"},
		{head, ":(glob)**", "nothing"},
		{head, "", "nothing"},
		{root, "other", "nothing"}, // added later
		{head, "place", "nothing"}, // still there
	} {
		for range 2 { // from git, then from the cache
			g, err := m.Gone(within(t), tt.commit, tt.path)
			got := "nothing"
			if g.Commit.Hash != "" {
				got = fmt.Sprintf("%s after %s, was %d, now %s", g.Commit.Subject, r.git("log", "-1", "--format=%s", g.Last), g.Kind, g.Renamed)
			}
			if err != nil || got != tt.want || g.Late {
				t.Errorf("%q at %.8s: %q late %t %v, want %q", tt.path, tt.commit, got, g.Late, err, tt.want)
			}
		}
	}
}

// Bad input is refused, and it is an error if the caller's time ends.
func TestRemovedPath_reportsWhenItsTimeEnds(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "begin", "a", "1\n")
	h.commit("refs/heads/main", 2, "Ann", "end", "a", "D", "b", "2\n")
	r.load(h)
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")
	for _, path := range []string{"../x", "a\x00b"} {
		if _, err := m.Gone(within(t), head, path); !errors.Is(err, ErrBadPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := m.Gone(within(t), "HEAD", "a"); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if g, err := m.Gone(gone, head, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller has left: %+v, %v", g, err)
	}

	// If the search runs out of time, the answer says so and is not cached.
	if g, err := m.goneWithin(within(t), 1, head, "a"); err != nil || !g.Late || g.Last != "" {
		t.Errorf("without time: %+v, %v", g, err)
	}
	if g, err := m.Gone(within(t), head, "a"); err != nil || g.Commit.Subject != "end" {
		t.Errorf("%+v, %v", g, err)
	}
}

package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// straight returns a repository whose main branch is a line of so many commits.
func straight(t *testing.T, commits int) *repo {
	t.Helper()
	r, h := newRepo(t), &stream{}
	for i := range commits {
		h.commit("refs/heads/main", i+1, "Ann", fmt.Sprint("main ", i), "a", fmt.Sprint(i))
	}
	r.load(h)
	return r
}

// The first tag that contains a commit is the one at the earliest commit with it in its history.
// The commit graph may have all commits, none, or only the older ones.
func TestFirstTag_agreesWithGit(t *testing.T) {
	t.Parallel()
	r := straight(t, 12)
	id := func(ref string) string { return r.git("rev-parse", ref+"^{commit}") }
	base := id("main")

	// One branch from the middle is merged at the end, another never.
	h := &stream{}
	fmt.Fprintf(h, "reset refs/heads/side\nfrom %s\n\nreset refs/heads/alone\nfrom %s\n\nreset refs/heads/main\nfrom %s\n\n", id("main~8"), id("main~8"), base)
	h.commit("refs/heads/side", 20, "Bob", "side", "b", "1")
	h.commit("refs/heads/alone", 21, "Bob", "alone", "c", "1")
	fmt.Fprintf(h, "commit refs/heads/main\ncommitter Ann <ann@example.org> %d +0000\ndata 5\nmerge\nfrom %s\nmerge refs/heads/side\n\n", at(22), base)
	r.load(h)
	merge := id("main")
	for tag, at := range map[string]string{
		"v1.0": base + "~10", "v2.0-rc1": base + "~7", "v2.0-rc2": base + "~6", "v2.0": base + "~5", "v3.0": base + "~2", "v4.0-beta.1": merge,
	} {
		r.git("tag", "-a", "-m", tag, tag, at)
	}
	r.git("tag", "nightly", base+"~3")

	rows := []struct{ commit, name, release string }{
		{base + "~11", "v1.0", ""},
		{base + "~10", "v1.0", ""}, // the commit of the tag itself
		{base + "~9", "v2.0-rc1", "v2.0"},
		{base + "~6", "v2.0-rc2", "v2.0"},
		{base + "~5", "v2.0", ""},
		{base + "~4", "nightly", "v3.0"},
		{base + "~2", "v3.0", ""},
		{base, "v4.0-beta.1", ""}, // not released yet
		{"side", "v4.0-beta.1", ""},
		{"alone", "", ""},
	}
	check := func(what string, m *Mirror) {
		t.Helper()
		for _, tt := range rows {
			got, err := m.FirstTag(within(t), id(tt.commit))
			if err != nil || got.Name != tt.name || got.Release != tt.release || got.Tags != 7 || got.Late {
				t.Errorf("%s: %s: %+v, %v, want %q then %q", what, tt.commit, got, err, tt.name, tt.release)
			}
			// git tag --contains lists all tags that contain the commit.
			list := strings.Fields(r.git("tag", "--contains", id(tt.commit)))
			if tt.name == "" && len(list) > 0 || tt.name != "" && !slices.Contains(list, tt.name) {
				t.Errorf("%s: git lists %q", tt.commit, list)
			}
		}
	}

	m := fetched(t, r.url())
	check("as it was fetched", m)
	runGit(t, m.Dir(), nil, "commit-graph", "write", "--reachable")
	check("with a graph", m)

	// The graph lacks the commits that come now.
	h = &stream{}
	h.commit("refs/heads/main", 2_000_000, "Ann", "later", "a", "later")
	r.load(h)
	rows = append(rows, struct{ commit, name, release string }{"main", "", ""})
	fetchAgain(t, m, r.url())
	check("newer than the graph", m)
	check("asked again", m)

	// An answer is cached until the tags change.
	oldest := id(base + "~11")
	if c, err := m.Show(within(t), oldest); err != nil || len(c.Refs) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	r.git("tag", "v0.9", base+"~11")
	fetchAgain(t, m, r.url())
	if got, err := m.FirstTag(within(t), oldest); err != nil || got.Name != "v0.9" || got.Tags != 8 {
		t.Errorf("with one tag more: %+v, %v", got, err)
	}
	if c, err := m.Show(within(t), oldest); err != nil || !slices.Equal(c.Refs, []string{"refs/tags/v0.9"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// Bad input is refused. If the search runs out of time, the result says so; if the caller's time
// ends, it is an error.
func TestFirstTag_reportsWhenItsTimeEnds(t *testing.T) {
	t.Parallel()
	r := straight(t, 3000)
	m := fetched(t, r.url())
	head, root := r.git("rev-parse", "main"), r.git("rev-parse", "main~2999")
	if got, err := m.FirstTag(within(t), head); err != nil || got != (FirstTag{}) {
		t.Errorf("without a tag: %+v, %v", got, err)
	}

	r.git("tag", "v1")
	fetchAgain(t, m, r.url())
	if _, err := m.FirstTag(within(t), "HEAD"); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}
	if got, err := m.firstTagWithin(within(t), 1, root); err != nil || !got.Late || got.Name != "" {
		t.Errorf("without time: %+v, %v", got, err)
	}
	if got, err := m.FirstTag(within(t), root); err != nil || got.Name != "v1" || got.Late {
		t.Errorf("%+v, %v", got, err)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.FirstTag(gone, r.git("rev-parse", "main~2998")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller has left: %+v, %v", got, err)
	}
}

func TestIsPreRelease_recognizesVersionSuffixes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"v6.1": false, "7.0.0": false, "release-2024-05-01": false, "v1.2.3-1": false, "go1.22.1": false, "v2-search": false,
		"v6.1-rc1": true, "v2.0.0-beta.3": true, "3.0.0b2": true, "3.0a1": true, "1.0.0rc2": true, "v1-alpha": true, "nightly": true, "latest": true, "v3.0-dev": true, "2.0-SNAPSHOT": true,
	} {
		if got := IsPreRelease(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// fetchAgain fetches what has changed at a remote.
func fetchAgain(t *testing.T, m *Mirror, address string) {
	t.Helper()
	if _, err := m.Fetch(within(t), Remote{URL: address}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Parts of a repository may have their own tags. Then the answer also names the first release whose
// tag is only a version.
func TestFirstTag_alsoNamesTheFirstRelease(t *testing.T) {
	t.Parallel()
	r := straight(t, 10)
	for tag, back := range map[string]int{"core-0.1": 9, "core-0.2-rc1": 8, "glob-1.0": 7, "core-0.2": 6, "14.0": 5, "glob-1.1": 4, "15.0.0-rc1": 3, "15.0.0": 2, "release-16": 1} {
		r.git("tag", tag, fmt.Sprintf("main~%d", back))
	}
	m := fetched(t, r.url())

	for _, tt := range []struct {
		back                 int
		name, release, whole string
		parts                string
	}{
		{9, "core-0.1", "", "14.0", "core-0.1 glob-1.0"},
		{8, "core-0.2-rc1", "core-0.2", "14.0", "glob-1.0 core-0.2"}, // not glob-1.0, a tag of another part
		{7, "glob-1.0", "", "14.0", "glob-1.0 core-0.2"},
		{5, "14.0", "", "", "glob-1.1"},
		{4, "glob-1.1", "", "15.0.0", "glob-1.1"},
		{3, "15.0.0-rc1", "15.0.0", "", ""},
		{1, "release-16", "", "", ""},
		{0, "", "", "", ""},
	} {
		got, err := m.FirstTag(within(t), r.git("rev-parse", fmt.Sprintf("main~%d", tt.back)))
		if err != nil || got.Name != tt.name || got.Release != tt.release || got.Whole != tt.whole || got.Parts != tt.parts {
			t.Errorf("main~%d: %+v, %v, want %q, %q, %q, %q", tt.back, got, err, tt.name, tt.release, tt.whole, tt.parts)
		}
	}
}

// The refs that contain a commit equal those that git lists.
func TestRefsContainingACommit_agreeWithGit(t *testing.T) {
	t.Parallel()
	r := straight(t, 3000)
	for i := range 20 {
		r.git("tag", fmt.Sprintf("v%d", i), fmt.Sprintf("main~%d", i*150))
	}
	m := fetched(t, r.url())
	tags, err := m.Tags(within(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, back := range []int{0, 1, 149, 150, 1000, 2999} {
		commit := r.git("rev-parse", fmt.Sprintf("main~%d", back))
		kept, late, err := m.Having(within(t), commit, tags)
		if err != nil || late {
			t.Fatal(late, err)
		}
		var names []string
		for _, ref := range kept {
			names = append(names, ref.Name)
		}
		slices.Sort(names)
		if want := strings.Fields(r.git("tag", "--contains", commit)); !slices.Equal(names, want) {
			t.Errorf("main~%d: %q, git lists %q", back, names, want)
		}
	}

	if _, late, err := m.havingWithin(within(t), 1, r.git("rev-parse", "main~2999"), tags); err != nil || !late {
		t.Errorf("without time: %v, %v", late, err)
	}
	if _, _, err := m.Having(within(t), "HEAD", tags); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}
}

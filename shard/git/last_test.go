package git

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// lastAsGit compares the last changes in a directory with those that git prints for each entry. It
// returns their number.
func lastAsGit(t *testing.T, m *Mirror, commit, path string) int {
	t.Helper()
	got, err := m.Last(within(t), LastQuery{Commit: commit, Path: path})
	if err != nil {
		t.Fatalf("%q at %s: %v", path, commit, err)
	}
	entries, _, err := m.List(within(t), commit, path, ListOptions{})
	if err != nil || len(entries) != len(got.Entries) || got.Cut {
		t.Fatalf("%q at %s: %d entries, cut %t, want %d, %v", path, commit, len(got.Entries), got.Cut, len(entries), err)
	}

	for i, e := range entries {
		want, err := m.askLog(within(t), LogQuery{Limit: 1}, []string{"--end-of-options", commit, "--", e.Path})
		if err != nil || len(want.Commits) != 1 {
			t.Fatalf("%q: %+v, %v", e.Path, want, err)
		}
		w, g := want.Commits[0], got.Entries[i]
		if join(path, g.Name) != e.Path || g.Commit != w.Hash || g.From != "" {
			t.Errorf("%q at %.8s: %+v, git has %s", e.Path, commit, g, w.Hash)
			continue
		}

		w.Body, w.Parents, w.Refs, w.Head = "", nil, nil, false
		if c := got.Commits[g.Commit]; fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", w) {
			t.Errorf("%q at %.8s:\n%+v, git has\n%+v", e.Path, commit, c, w)
		}
	}
	return len(entries)
}

// The last change of each entry equals git's, over merges, wrong clocks and branches without
// changes, whatever the commit graph contains.
func TestLastChanges_agreeWithGit(t *testing.T) {
	t.Parallel()
	const commits = 120
	for seed := range uint64(4) {
		var extra []string
		if seed == 3 {
			extra = []string{"--object-format=sha256"}
		}
		r := newRepo(t, extra...)
		h := &stream{}
		tangle(h, rand.New(rand.NewPCG(seed, 7)), 0, commits)
		r.load(h)
		m := fetched(t, r.url())

		check := func() {
			t.Helper()
			tested := 0
			for _, ref := range []string{"main", "main~5", "b60"} {
				commit := r.git("rev-parse", ref)
				for _, path := range []string{"", "d", "d/e", "ü"} {
					if e, err := m.Stat(within(t), commit, path); err == nil && e.Kind == Dir {
						tested += lastAsGit(t, m, commit, path)
					}
				}
			}
			if tested < 10 {
				t.Errorf("only %d entries were looked at", tested)
			}
		}
		check() // without a commit graph
		if err := m.Groom(within(t)); err != nil {
			t.Fatal(err)
		}
		m.lasts.cached = run.NewFlights[*LastChanges](0) // a cache without room
		check()
	}
}

// Entries that are no regular files change too: a symlink, a submodule, a mode, a renamed file, or
// a name that another kind of entry takes. One commit has a message in another encoding.
func TestLastChanges_coverSymlinksSubmodulesAndModes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	link, module := "mode 120000 link", "mode 160000 module"
	id := strings.Repeat("1", 40)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "begin\n\nbody", "a file\n", "1", link, "a", module, id, "tool", "x", "was", strings.Repeat("same\n", 20), "sub/kept", "1", "both", "f")
	h.commit("refs/heads/main", 2, "Bob", "link", link, "b")
	h.commit("refs/heads/main", 3, "Bob", "module", module, strings.Repeat("2", 40))
	h.commit("refs/heads/main", 4, "Cleo", "rename", "was", "D", "is", strings.Repeat("same\n", 20))
	h.commit("refs/heads/main", 5, "Cleo", "a mode", "mode 100755 tool", "x")
	h.commit("refs/heads/main", 6, "Cleo", "a directory now", "both", "D", "both/in", "f")
	h.commit("refs/heads/main", 7, "Cleo", "below", "sub/deep/new", "1")
	h.commit("refs/heads/main", 8, "Dan", "\xffin no UTF-8", ":(glob)*", "1", "Not \xff UTF-8", "1")
	r.load(h)
	runGit(t, r.dir, nil, "update-ref", "refs/heads/odd", runGit(t, r.dir, []byte("odd \xa4\n"), "-c", "i18n.commitEncoding=iso-8859-15", "commit-tree", "-p", "main", runGit(t, r.dir, []byte("100644 blob "+r.git("rev-parse", "main:is")+"\tis\n100644 blob "+r.git("rev-parse", "main:sub/kept")+"\tnew\n"), "mktree")))
	m := fetched(t, r.url())

	head := r.git("rev-parse", "main")
	if n := lastAsGit(t, m, head, ""); n != 9 {
		t.Errorf("%d entries", n)
	}
	lastAsGit(t, m, head, "sub")
	lastAsGit(t, m, head, "sub/deep")
	lastAsGit(t, m, r.git("rev-parse", "odd"), "")

	got, err := m.Last(within(t), LastQuery{Commit: head, Max: 2})
	if err != nil || !got.Cut || len(got.Entries) != 2 || got.Entries[0].Name != "both" || got.Entries[1].Name != "sub" {
		t.Errorf("of two: %+v, %v", got, err)
	}
	for path, want := range map[string]error{"none": ErrNoPath, "tool": ErrNotDir, "module": ErrNotDir, "link": ErrNotDir, "../x": ErrBadPath} {
		if _, err := m.Last(within(t), LastQuery{Commit: head, Path: path}); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
	if _, err := m.Last(within(t), LastQuery{Commit: "HEAD"}); !errors.Is(err, ErrBadRef) {
		t.Errorf("no id of a commit: %v", err)
	}
}

// If the time ends first, the answer has the changes found so far, and a commit to continue from. A
// caller that continues from there reaches the end.
func TestLastChanges_continueAfterTheTimeEnds(t *testing.T) {
	t.Parallel()
	r := repoOfFiles(t, 30)
	source := fetched(t, r.url())

	// On this clock each commit takes a second.
	moment := time.Unix(0, 0)
	ticking := NewProcesses(run.PoolSize, func() time.Time { moment = moment.Add(time.Second); return moment })
	m := ticking.Open(source.Dir())
	defer m.Close()

	left := map[string]string{} // entries without an answer, and the commit to continue from
	for i := range 30 {
		left[fmt.Sprintf("f%02d", i)] = r.git("rev-parse", "main")
	}
	for asked := 0; len(left) > 0; asked++ {
		if asked > 10 {
			t.Fatalf("%d entries are still not found", len(left))
		}
		var from string
		for _, from = range left {
			break
		}

		page, err := m.Last(within(t), LastQuery{Commit: from})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range page.Entries {
			if left[e.Name] != from {
				continue
			}
			if e.Commit == "" {
				left[e.Name] = e.From
				continue
			}
			var n int
			fmt.Sscanf(e.Name, "f%d", &n)
			if got := page.Commits[e.Commit].Subject; got != fmt.Sprint("commit ", n) {
				t.Errorf("%s was changed by %q", e.Name, got)
			}
			delete(left, e.Name)
			found++
		}
		if found < 4 || found > 5 {
			t.Errorf("%d were found in five commits", found)
		}
	}
}

// A shallow history begins at the same commits as for git.
func TestLastChanges_ofAShallowRepositoryAgreeWithGit(t *testing.T) {
	t.Parallel()
	r := repoOfFiles(t, 5)
	shallow := filepath.Join(t.TempDir(), "shallow.git")
	runGit(t, "", nil, "clone", "--quiet", "--bare", "--depth=2", r.url(), shallow)

	m := fetched(t, "file://"+shallow)
	if n := lastAsGit(t, m, r.git("rev-parse", "main"), ""); n != 5 {
		t.Errorf("%d entries", n)
	}
}

// Git reads the objects that are in no pack.
func TestLastChanges_ofLooseObjectsAgreeWithGit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	for i := range 5 {
		h.commit("refs/heads/main", i, "Ann", fmt.Sprint("commit ", i), fmt.Sprintf("d/f%02d", i), "x")
	}
	runGit(t, r.dir, h.Bytes(), "-c", "fastimport.unpackLimit=1000", "fast-import", "--quiet", "--force", "--date-format=raw")
	m := NewProcesses(run.PoolSize, clock.Now).Open(r.dir)
	defer m.Close()
	if n := lastAsGit(t, m, r.git("rev-parse", "main"), "d"); n != 5 {
		t.Errorf("%d entries", n)
	}
}

// repoOfFiles returns a repository in which each of n commits adds a file.
func repoOfFiles(t *testing.T, n int) *repo {
	t.Helper()
	r := newRepo(t)
	h := &stream{}
	for i := range n {
		h.commit("refs/heads/main", i, "Ann", fmt.Sprint("commit ", i), fmt.Sprintf("f%02d", i), "x")
	}
	r.load(h)
	return r
}

package history

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
)

// listedMirrors has mirrors that are never read, and counts how often they are listed.
type listedMirrors struct {
	ids    []catalog.RepoID
	listed int
}

func (m *listedMirrors) Names() (ids []catalog.RepoID, strange []string, err error) {
	m.listed++
	return m.ids, nil, nil
}
func (m *listedMirrors) Get(catalog.RepoID) *git.Mirror { return nil }
func (m *listedMirrors) Has(catalog.RepoID) bool        { return false }

// While the catalog has the same data, a round costs nothing.
func TestChangeIndexKeeper_restsWhileTheCatalogIsUnchanged(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	mirrors := &listedMirrors{}
	k := New(Deps{Dir: t.TempDir(), View: w.View, Mirrors: mirrors, Bound: change.Bound{All: true}, Busy: func() bool { return false }, Now: w.Now, Log: slog.New(slog.DiscardHandler)})
	round := func(want int) {
		t.Helper()
		if err := k.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if mirrors.listed != want {
			t.Errorf("the mirrors were listed %d times, want %d", mirrors.listed, want)
		}
	}

	round(1)
	w.Pass(time.Hour)
	round(1)
	w.Repos("a", "one")
	round(2)
	round(2)
}

// The mirror of a repository that has left is looked at until it is gone, and its changes with it.
func TestChangeIndexKeeper_deletesChangesOnceTheMirrorIsGone(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	mirrors := &listedMirrors{ids: []catalog.RepoID{7}}
	dir := t.TempDir()
	k := New(Deps{Dir: dir, View: w.View, Mirrors: mirrors, Now: w.Now, Log: slog.New(slog.DiscardHandler)})
	changes := filepath.Join(dir, "7")
	if err := os.Mkdir(changes, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mirrors []catalog.RepoID
		there   bool
	}{{mirrors.ids, true}, {mirrors.ids, true}, {nil, false}} {
		mirrors.ids = c.mirrors
		if err := k.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(changes); (err == nil) != c.there {
			t.Errorf("with the mirrors %v: %v, want its changes there: %v", c.mirrors, err, c.there)
		}
	}
}

// The status of many repositories is not counted for each that asks.
func TestChangeIndexKeeper_countsForTheStatusOnceInAPause(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	for pause, want := range map[time.Duration]int{time.Hour: 1, 0: 2} {
		mirrors := &listedMirrors{}
		k := New(Deps{View: w.View, Mirrors: mirrors, Rest: func() time.Duration { return pause }, Now: w.Now})
		k.Status()
		k.Status()
		if mirrors.listed != want {
			t.Errorf("with a pause of %v the mirrors were listed %d times for two, want %d", pause, mirrors.listed, want)
		}
	}
}

// Who wants more or less of the past than before does not wait for the next push.
func TestChangeIndexKeeper_followsAnotherBound(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = repo
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q", "-b", "main")
	run("commit", "-q", "--allow-empty", "-m", "one")
	run("commit", "-q", "--allow-empty", "-m", "two")
	mirror, head := git.Open(filepath.Join(repo, ".git")), run("rev-parse", "main")
	t.Cleanup(func() { mirror.Close() })
	record := &catalog.Repo{ID: 1, Revisions: []catalog.Revision{{Name: "HEAD", Commit: head}}}

	w, dir := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1), t.TempDir()
	for _, c := range []struct {
		bound   change.Bound
		commits int
		changed bool
	}{{change.Bound{Commits: 1}, 1, true}, {change.Bound{Commits: 1}, 1, false}, {change.Bound{All: true}, 2, true}} {
		k := New(Deps{Dir: dir, View: w.View, Mirrors: oneMirror{mirror}, Bound: c.bound, Busy: func() bool { return false }, Now: time.Now})
		changed, err := k.update(t.Context(), k.of(1), record)
		extent, _ := k.of(1).log.Extent(t.Context())
		if err != nil || changed != c.changed || extent.Commits != c.commits {
			t.Errorf("%v: changed %t, %d commits, %v", c.bound, changed, extent.Commits, err)
		}
		k.close()
	}
}

// oneMirror has one mirror, of all repositories.
type oneMirror struct{ mirror *git.Mirror }

func (m oneMirror) Names() (ids []catalog.RepoID, strange []string, err error) { return nil, nil, nil }
func (m oneMirror) Get(catalog.RepoID) *git.Mirror                             { return m.mirror }
func (m oneMirror) Has(catalog.RepoID) bool                                    { return true }

// A log that no search has used for a while gives its files back, and opens them again when asked.
func TestChangeIndexKeeper_closesIdleLogs(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	k := New(Deps{Dir: t.TempDir(), View: w.View, Now: w.Now})
	e := k.of(1)
	e.used = w.Now()
	k.closeIdle()
	if e.used.IsZero() {
		t.Error("a log was closed right after a search")
	}
	w.Pass(2 * openTime)
	k.closeIdle()
	if !e.used.IsZero() {
		t.Error("an idle log stays open")
	}
	if _, err := e.log.Extent(t.Context()); err != nil {
		t.Errorf("it does not open again: %v", err)
	}
}

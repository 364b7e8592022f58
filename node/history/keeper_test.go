package history

import (
	"log/slog"
	"os"
	"path/filepath"
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

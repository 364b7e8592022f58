package hold

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/place"
)

// oneRepository returns a team of that many nodes with one repository. n1 has built its shard, and
// the nodes in target should hold it.
func oneRepository(t *testing.T, nodes int, target ...string) (m *team, shard string) {
	m = newTeam(t, nodes)
	m.Repos("a", "r")
	shard = m.index(1, "n1", "walrus")
	m.Target(place.GroupOf(1), target...)
	return m, shard
}

// A repository moves from one node to another: it is copied and confirmed there, then given up and
// deleted on the old node.
func TestCopyRepository_movesIndexFilesAndMirror(t *testing.T) {
	t.Parallel()
	m, file := oneRepository(t, 3, "n1", "n2")
	m.settle()
	m.holds(1, "n1", "n2")

	m.Target(place.GroupOf(1), "n2", "n3")
	m.settle()
	m.holds(1, "n2", "n3")
	for _, id := range []string{"n1", "n2", "n3"} {
		m.collect(id)
		n := m.nodes[id]
		if want := id != "n1"; n.files.Has(file) != want || n.files.Mirrors.Has(1) != want {
			t.Errorf("%s has the shard: %v, the mirror: %v", id, n.files.Has(file), n.files.Mirrors.Has(1))
		}
	}
	if got, err := m.nodes["n3"].files.Mirrors.Get(1).Resolve(t.Context(), "HEAD"); err != nil || got != m.View().Repo(1).Revisions[0].Commit {
		t.Errorf("the mirror that was copied is at %s, %v", got, err)
	}
	if n := m.nodes["n3"].transfers; n.Copied() == 0 {
		t.Error("no bytes are counted")
	}
	if moves := m.nodes["n3"].copier.Moves(m.View()); moves != 0 {
		t.Errorf("%d copies are under way in the end", moves)
	}
}

// A source with wrong bytes for a name gives nothing, and the next source is asked.
func TestCopyRepository_asksAnotherSourceAfterDamagedBytes(t *testing.T) {
	t.Parallel()
	m, file := oneRepository(t, 3, "n1", "n2")
	m.settle()

	path := filepath.Join(m.nodes["n1"].dir, "shards", file)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := errors.Join(os.Remove(path), os.WriteFile(path, raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := m.nodes["n3"].transfers.CopyFile(t.Context(), file, []string{"n1"}); err == nil || m.nodes["n3"].files.Has(file) {
		t.Errorf("damaged bytes were taken: %v", err)
	}
	if err := m.nodes["n3"].transfers.CopyFile(t.Context(), file, []string{"n1", "n2"}); err != nil || !m.nodes["n3"].files.Has(file) {
		t.Errorf("the second source was not asked: %v", err)
	}
}

func TestCopyRepository_isRetriedLaterAfterAFailure(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 2, "n1", "n2")

	m.full["n2"] = true
	m.look("n2")
	m.full["n2"] = false
	m.look("n2")
	m.holds(1, "n1") // the copier waits after the failure
	m.Pass(2 * copyRetry)
	m.settle()
	m.holds(1, "n1", "n2")
}

// Hidden repositories are copied, but their copies are not counted.
func TestCopyCounts_ignoreHiddenRepositories(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 2, "n1", "n2")
	look := func(want int) {
		t.Helper()
		of := m.nodes["n2"].copier
		w := of.newScene(t.Context(), m.View()).decideAll()
		if len(w.files) != 1 || len(w.mirrors) != 1 {
			t.Fatalf("wanted are the files %v and mirrors %v", w.files, w.mirrors)
		}

		// Mark the copies as running; a test could not see them in that state.
		for name := range w.files {
			of.active[name] = true
		}
		for id := range w.mirrors {
			of.active[catalog.MirrorKey(id)] = true
		}
		if got := of.Moves(m.View()); got != want {
			t.Errorf("%d copies are told of, want %d", got, want)
		}
		clear(of.active)
	}
	look(2)

	m.Hide("a")
	look(0)
}

// A copier forgets files and repositories that are gone.
func TestCopier_forgetsRemovedRepositories(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 2, "n1", "n2")
	of := m.nodes["n2"].copier
	m.full["n2"] = true
	m.look("n2")
	m.full["n2"] = false
	if len(of.failed) == 0 {
		t.Fatal("no copy failed")
	}

	// The repository moved before the copy was tried again.
	m.Target(place.GroupOf(1), "n1")
	m.look("n2")
	if len(of.failed) == 0 {
		t.Error("a failure is forgotten before the wait after it is over")
	}
	m.Pass(2*copyWait + time.Second)
	m.look("n2")
	if len(of.failed) != 0 {
		t.Errorf("failures of %v are kept", of.failed)
	}

	m.Target(place.GroupOf(1), "n1", "n2")
	m.settle()
	m.holds(1, "n1", "n2")
	if len(of.fresh) != 1 {
		t.Fatalf("%d mirrors are known to be fresh", len(of.fresh))
	}
	m.Repos("a")
	m.Do(&catalog.EnqueueJob{Kind: catalog.JobCollect, Subject: catalog.RepoSubject(1)})
	m.Do(&catalog.FinishCollect{Repo: 1, Fence: m.Grant(catalog.JobCollect, catalog.RepoSubject(1), "n1")})
	m.look("n2")
	if len(of.fresh) != 0 {
		t.Errorf("the mirrors of %v are known to be fresh", of.fresh)
	}
}

// A name that is not the name of an index file is refused before any file is opened.
func TestTransfer_refusesNamesThatAreNoIndexFile(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2)
	for _, name := range []string{"", "../cluster.key", "node.json", strings.Repeat("a", 64), strings.Repeat("a", 64) + ".txt", "/etc/passwd"} {
		if err := m.nodes["n1"].transfers.CopyFile(t.Context(), name, []string{"n2"}); err == nil {
			t.Errorf("%q was copied", name)
		}
		r, err := calls{m, "n1"}.Stream(t.Context(), "n2", MethodFile, []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "not the name of an index file") {
			t.Errorf("%q was given: %v", name, err)
		}
		r.Close()
	}
}

// A node copies files that another node is about to publish, and keeps them although no view names
// them. It is not asked while it is away.
func TestSecondCopy_isMadeBeforePublication(t *testing.T) {
	t.Parallel()
	m, file := oneRepository(t, 3, "n1", "n2")

	first := m.nodes["n1"].transfers
	if got := first.CopyBeforePublish(t.Context(), 1, []string{file}); got != "n2" || !m.nodes["n2"].files.Has(file) {
		t.Errorf("the second copy is on %q", got)
	}
	m.Lose("n2")
	if got := first.CopyBeforePublish(t.Context(), 1, []string{file}); got != "" {
		t.Errorf("with n2 away the second copy is on %q", got)
	}
	if got := first.CopyBeforePublish(t.Context(), 1, nil); got != "" {
		t.Errorf("a generation without files has a second copy on %q", got)
	}
}

// A file that is gone from a disk is reported, and copied again from the other holder. A file
// without a holder is lost.
func TestFileCollector_reportsMissingFilesForCopying(t *testing.T) {
	t.Parallel()
	m, file := oneRepository(t, 2, "n1", "n2")
	m.settle()

	forget := func(id string) {
		n := m.nodes[id]
		if _, err := n.files.Retain(func(string) bool { return false }, 0); err != nil {
			t.Fatal(err)
		}
		m.Pass(1)
		if _, err := n.files.Retain(func(string) bool { return false }, 0); err != nil || n.files.Has(file) {
			t.Fatalf("the file is still there: %v", err)
		}
		n.collector.Collect(t.Context())
	}
	forget("n1")
	key := catalog.ShardKey(strings.TrimSuffix(file, ".shard"))
	if got := m.View().Holders(key); len(got) != 1 || got[0] != "n2" {
		t.Errorf("after the loss it is held by %q", got)
	}
	if m.nodes["n1"].transfers.AnyFileLost(m.View(), m.View().Repo(1)) {
		t.Error("it is lost, though n2 has it")
	}
	m.nodes["n1"].transfers.CopyMissingFiles(t.Context(), m.View().Repo(1))
	if !m.nodes["n1"].files.Complete(m.View().Repo(1)) {
		t.Error("it was not gathered")
	}
	m.settle()
	m.holds(1, "n1", "n2")

	forget("n1")
	forget("n2")
	if !m.nodes["n1"].transfers.AnyFileLost(m.View(), m.View().Repo(1)) {
		t.Error("nobody has it, and it is not lost")
	}
}

// Without a current view nothing is deleted.
func TestFileCollector_deletesNothingWithAnOldCatalog(t *testing.T) {
	t.Parallel()
	m, file := oneRepository(t, 3, "n2", "n3")
	m.settle()
	m.holds(1, "n2", "n3")

	n := m.nodes["n1"]
	old := NewCollector(aged{n}, n.files, func(catalog.RepoID) bool { return false }, n.copier.opt.Log)
	for range 3 {
		old.Collect(context.Background())
		m.Pass(maxViewAge)
	}
	if !n.files.Has(file) || !n.files.Mirrors.Has(1) {
		t.Error("a node that hears of no leader has deleted what it holds")
	}
	m.collect("n1")
	if n.files.Has(file) || n.files.Mirrors.Has(1) {
		t.Error("with a current view it keeps what it does not hold")
	}
}

// aged is a node whose view may be old.
type aged struct{ *mate }

// Age implements Cluster.
func (aged) Age() time.Duration { return maxViewAge + 1 }

// A repository that a configuration dropped stays for a while, with copies where they belong. A
// drained node gives it away: otherwise the drain would take as long.
func TestCopyRepository_alsoMovesDroppedOnesUntilTheirDeletion(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 3, "n1", "n2")
	m.settle()

	none, err := config.Parse([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	m.Do(catalog.NewSetConfig([]byte("{}"), none))
	if r := m.View().Repo(1); !r.Orphaned() || r.KeptUntil.IsZero() {
		t.Fatalf("the repository is %+v", r)
	}
	m.Target(place.GroupOf(1), "n1", "n3")
	m.settle()
	m.holds(1, "n1", "n3")

	// A repository that will soon be deleted need not be copied.
	m.Pass(25 * time.Hour)
	m.Target(place.GroupOf(1), "n2", "n3")
	m.settle()
	m.holds(1, "n1", "n3")
}

// A node that gave a mirror away and is a target again at once, as one that is drained and taken
// back, has no mirror. It copies it, and is no holder until then.
func TestCopyRepository_copiesAMirrorAgainThatWasGivenAway(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 3, "n1", "n2")
	m.settle()
	m.Target(place.GroupOf(1), "n2", "n3")
	m.settle()
	m.holds(1, "n2", "n3")
	m.collect("n1")
	if m.nodes["n1"].files.Mirrors.Has(1) {
		t.Fatal("the mirror is still there")
	}

	m.Target(place.GroupOf(1), "n1", "n2")
	m.settle()
	m.holds(1, "n1", "n2")
	if !m.nodes["n1"].files.Mirrors.Has(1) {
		t.Error("n1 is a holder of the mirror, and has none")
	}

	// Whatever removed the mirror, other nodes learn of it.
	if err := m.nodes["n1"].files.Mirrors.Drop(1); err != nil {
		t.Fatal(err)
	}
	n := m.nodes["n1"]
	if w := n.copier.newScene(t.Context(), m.View()).decideAll(); !slices.Contains(w.giveUps, catalog.MirrorKey(1)) || len(w.mirrors) != 1 {
		t.Errorf("without its mirror it gives up %q and copies %v", w.giveUps, w.mirrors)
	}
	m.settle()
	m.holds(1, "n1", "n2")
	if !n.files.Mirrors.Has(1) {
		t.Error("the mirror is not copied again")
	}
}

// A node that publishes a repository for others, while there is no leader, removes a mirror that no
// view says it holds. Then the entry arrives that says so. The node must report the loss, or all
// others copy from it forever.
func TestFileCollector_reportsAMirrorThatItRemovedTooEarly(t *testing.T) {
	t.Parallel()
	m, _ := oneRepository(t, 3, "n2", "n3")
	key := catalog.MirrorKey(1)
	m.collect("n1") // it checks all mirrors once, while the entry below is still under way
	m.Drop("n1", key)
	m.collect("n1")
	if m.nodes["n1"].files.Mirrors.Has(1) {
		t.Fatal("the mirror is still there")
	}

	m.Confirm("n1", key)
	if got := m.View().Holders(key); !slices.Equal(got, []string{"n1"}) {
		t.Fatalf("the mirror is held by %q", got)
	}
	m.collect("n1")
	if got := m.View().Holders(key); len(got) != 0 {
		t.Errorf("the mirror is held by %q, where it is not", got)
	}
}

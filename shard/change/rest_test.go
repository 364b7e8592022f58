package change

import (
	"context"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// What the log lacks is read from git: all commits, the newest, the oldest, or those that were rewritten.
func TestSearchAll_readsFromGitWhatTheLogLacks(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]*Bound{"all": nil, "the oldest": {Commits: 9}, "the newest": {All: true}, "both": {Commits: 5}} {
		w := newWorld(t, uint64(5000+len(name)))
		w.grow(30)
		l, m := Open(t.TempDir()), git.Open(w.dir)
		defer l.Close()
		if bound != nil {
			if err := l.Update(t.Context(), m, w.revisions(), *bound, time.Now(), noPause); err != nil {
				t.Fatal(err)
			}
		}
		m.Close()
		if bound == nil || bound.All || bound.Commits == 5 {
			w.mark -= 4 // these are gone
			w.grow(12)
		}
		m = git.Open(w.dir)
		defer m.Close()
		rest := Rest{m, w.revisions(), t.TempDir()}
		w.compare(func(req LogSearch) (*LogMatches, error) {
			found, err := l.SearchAll(t.Context(), req, rest)
			if err == nil && (!found.Whole || !found.Before.IsZero()) {
				t.Errorf("%s: not whole, from %s", name, found.Before)
			}
			return found, err
		}, 12)
	}
}

// slowMirror reads some batches of commits, and then none until the time is over.
type slowMirror struct {
	Mirror
	batches int
}

func (m *slowMirror) Patches(ctx context.Context, ids []string, alone bool, to git.PatchReader) error {
	if m.batches--; m.batches < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.Mirror.Patches(ctx, ids, alone, to)
}

// Where the time does not suffice, the newest commits are found, and the answer names from when on.
func TestSearchAll_namesWhatTheTimeDidNotSufficeFor(t *testing.T) {
	t.Parallel()
	dir := synthetic(t, 3*restCommits)
	m := git.Open(dir)
	defer m.Close()
	tips := []Tip{{"HEAD", gitIn(t, dir, "rev-parse", "main")[:40]}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	found, err := Open(t.TempDir()).SearchAll(ctx, LogSearch{Q: query.Const(true), Limit: 1}, Rest{&slowMirror{m, 2}, tips, t.TempDir()})
	if err != nil || found.Whole || found.Total != 2*restCommits {
		t.Fatalf("%+v, %v", found, err)
	}
	if want := time.Unix(1_500_000_000+600*restCommits, 0).UTC(); !found.Before.Equal(want) {
		t.Errorf("commits before %s are missing, the answer says %s", want, found.Before)
	}
}

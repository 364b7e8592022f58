package hold

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/place"
)

// ledger changes a catalog for a test.
type ledger struct {
	t     testing.TB
	state *catalog.State
	index uint64
	now   time.Time
}

const ledgerEpoch = 1 << 24

// newLedger returns a catalog with two members and two connections, which list that many
// repositories in turn.
func newLedger(t testing.TB, repos int) *ledger {
	t.Helper()
	l := &ledger{t: t, state: catalog.New(), now: time.Unix(1_700_000_000, 0)}
	raw := []byte(`{"connections": {"a": {"type": "git", "url": "https://localhost/r"}, "b": {"type": "git", "url": "https://localhost/s"}}}`)
	file, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	l.do(&catalog.InitCluster{ID: "c"})
	l.do(catalog.NewSetConfig(raw, file))
	for _, id := range []string{"n1", "n2"} {
		l.do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: ledgerEpoch, Weight: 100, Zone: "z", Addr: id}})
	}
	for i, name := range []string{"a", "b"} {
		fence := l.grant(catalog.JobSync, name)
		var listed []catalog.ListedRepo
		for n := i; n < repos; n += 2 {
			listed = append(listed, catalog.ListedRepo{Name: fmt.Sprintf("r%05d", n)})
		}
		for page := range slices.Chunk(listed, catalog.MaxPage) {
			l.do(&catalog.SyncPage{Connection: name, Fence: fence, Repos: page})
		}
		l.do(&catalog.FinishSync{Connection: name, Fence: fence, Hash: l.state.View().Connection(name).Hash, Complete: true, Listed: uint32(len(listed))})
	}
	return l
}

// do applies a command, which the catalog may refuse.
func (l *ledger) do(cmd catalog.Command) uint64 {
	l.index++
	r := l.state.Apply(catalog.Entry{Index: l.index, At: l.now, Node: "n1", Commands: []catalog.Command{cmd}})[0]
	return r.ID
}

// grant makes a job run and returns its fence.
func (l *ledger) grant(kind catalog.JobKind, subject string) uint64 {
	l.do(&catalog.EnqueueJob{Kind: kind, Subject: subject})
	l.do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: ledgerEpoch, Deadline: l.now.Add(time.Hour)})
	if j := l.state.View().Job(kind, subject); j != nil {
		return j.Fence
	}
	return 0
}

// file returns one of a few file ids, so that repositories share some.
func (l *ledger) file(r *rand.Rand) string { return fmt.Sprintf("%064x", 1+r.IntN(12)) }

// finish ends an index job of a repository with files that others may have too.
func (l *ledger) finish(r *rand.Rand, id catalog.RepoID) {
	c := &catalog.FinishIndex{Repo: id, Fence: l.grant(catalog.JobIndex, catalog.RepoSubject(id)), Holder: "n1", LeftOut: uint32(r.IntN(2))}
	for range r.IntN(3) {
		c.Shards = append(c.Shards, catalog.ShardRef{ID: l.file(r), Bytes: int64(r.IntN(1000)), Slice: uint16(r.IntN(2)), BuiltFor: catalog.RepoID(max(r.IntN(3)-1, 0))})
		c.Revisions = []catalog.Revision{{Name: "HEAD", Commit: strings.Repeat("cd", 20)}}
	}
	if r.IntN(2) == 0 {
		c.Second = "n2"
	}
	l.do(c)
}

// change makes a random change.
func (l *ledger) change(r *rand.Rand, repos int) {
	id := catalog.RepoID(1 + r.IntN(repos))
	subject, connection := catalog.RepoSubject(id), []string{"a", "b"}[r.IntN(2)]
	key := catalog.ShardKey(l.file(r))
	if r.IntN(2) == 0 {
		key = catalog.MirrorKey(id)
	}
	member := []string{"n1", "n2"}[r.IntN(2)]
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		l.finish(r, id)
	case 4:
		l.do(&catalog.Confirm{Node: member, Epoch: ledgerEpoch, Held: []string{key}})
	case 5:
		l.do(&catalog.Confirm{Node: member, Epoch: ledgerEpoch, Lost: []string{key}})
	case 6:
		l.do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: subject, Fence: l.grant(catalog.JobIndex, subject), Error: "no", Permanent: r.IntN(2) == 0})
	case 7:
		l.do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject})
	case 8:
		l.do(&catalog.FinishListing{FinishSync: catalog.FinishSync{Connection: connection, Fence: l.grant(catalog.JobSync, connection), Complete: true, Nothing: r.IntN(4) > 0}, Gone: []catalog.RepoID{id}})
	case 9:
		l.do(&catalog.SyncPage{Connection: connection, Fence: l.grant(catalog.JobSync, connection), Repos: []catalog.ListedRepo{
			{Name: fmt.Sprintf("r%05d", id-1), RepoFacts: catalog.RepoFacts{Unfetchable: []string{"", "locked"}[r.IntN(2)], Empty: r.IntN(2) == 0}}}})
	case 10:
		l.do(&catalog.FinishCollect{Repo: id, Fence: l.grant(catalog.JobCollect, subject)})
	case 11:
		// After this time the repositories of the connection are hidden.
		l.now = l.now.Add(catalog.ServeRefused / 2)
		l.do(&catalog.FinishJob{Kind: catalog.JobSync, Subject: connection, Fence: l.grant(catalog.JobSync, connection), Error: "refused", TokenRefused: true})
	}
}

// count counts without a cache, by walking over everything.
func count(view *catalog.View, live Live, copies int) string {
	shown := view.Shown()
	var all, searchable, unfetchable, failed, leftOut, emptied, few, none []catalog.RepoID
	fewest, units, sizes, held, jobs := len(live), map[uint64]int{}, map[string]int64{}, map[uint32]int64{}, map[catalog.JobState]int{}
	for repo := range view.Repos() {
		if !shown(repo) {
			continue
		}
		note := func(list *[]catalog.RepoID, in bool) {
			if in {
				*list = append(*list, repo.ID)
			}
		}
		has := live.Searchable(view, repo)
		cannot := !has && repo.Unfetchable != ""
		j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
		note(&all, true)
		note(&searchable, has)
		note(&unfetchable, cannot)
		note(&failed, !cannot && j != nil && j.Error != "" && (j.State == catalog.JobFailed || j.State == catalog.JobBackoff))
		note(&leftOut, repo.LeftOut > 0)
		note(&emptied, repo.NoCommit() && !repo.Empty)

		units[place.GroupOf(repo.ID)]++
		for _, s := range repo.Shards {
			if s.BuiltFor == 0 { // else another repository counts the file
				sizes[catalog.ShardKey(s.ID)] += s.Bytes
			}
			if s.Slice != 0 {
				units[UnitOf(repo.ID, s)]++
			}
		}
		if repo.Indexed() {
			least := len(live)
			for key := range KeysOf(repo) {
				least = min(least, live.Copies(view, key))
			}
			fewest = min(fewest, least)
			note(&few, least < min(copies, len(live)))
			note(&none, least == 0)
		}
	}

	for h := range view.Holdings() {
		for _, n := range h.Nodes {
			held[n] += sizes[h.Key]
		}
	}
	for j := range view.Jobs() {
		repo := view.Repo(catalog.SubjectRepo(j.Subject))
		if !j.Kind.OfRepo() || repo == nil || repo.Orphaned() || shown(repo) {
			jobs[j.State]++
		}
	}
	return words(all, searchable, unfetchable, failed, leftOut, emptied, few, none, fewest, units, held, jobs)
}

// words returns the counts of a tally in the form of count.
func (t *Tally) words(copies int) string {
	s := t.Shortage(copies)
	return words(t.Shown.ToArray(), t.Searchable.ToArray(), t.Unfetchable.ToArray(), t.Failed.ToArray(), t.LeftOut.ToArray(), t.Emptied.ToArray(),
		s.Few.ToArray(), s.None.ToArray(), s.Fewest, t.Units, t.Bytes, t.Jobs)
}

func words(all, searchable, unfetchable, failed, leftOut, emptied, few, none []catalog.RepoID, fewest int, units map[uint64]int, held map[uint32]int64, jobs map[catalog.JobState]int) string {
	maps.DeleteFunc(held, func(_ uint32, n int64) bool { return n == 0 })
	maps.DeleteFunc(jobs, func(_ catalog.JobState, n int) bool { return n == 0 })
	return fmt.Sprintf("shown %d\nsearchable %d\nunfetchable %d\nfailed %d\nleft out %d\nemptied %d\nfew %d\nnone %d\nfewest %d\nunits %v\nheld %v\njobs %v",
		all, searchable, unfetchable, failed, leftOut, emptied, few, none, fewest, units, held, jobs)
}

// Whatever changes, and whoever is alive, a census counts like a walk over everything, also for an
// older view.
func TestCopyCount_equalsACountOverAllRepositories(t *testing.T) {
	t.Parallel()
	hidden := false
	for seed := range uint64(8) {
		r, repos := rand.New(rand.NewPCG(seed, 1)), 12
		l, c := newLedger(t, repos), new(Census)
		live, before := Live{1: true, 2: true}, l.state.View()
		for step := range 100 {
			for range 1 + r.IntN(3) {
				l.change(r, repos)
			}
			if r.IntN(10) == 0 {
				live = []Live{{}, {1: true}, {2: true}, {1: true, 2: true}}[r.IntN(4)]
			}
			view := l.state.View()
			for _, v := range []*catalog.View{view, before, view} {
				copies := 1 + r.IntN(3)
				if got, want := c.At(v, live).words(copies), count(v, live, copies); got != want {
					t.Fatalf("seed %d, step %d, alive %v:\n%s\nwant\n%s", seed, step, live, got, want)
				}
			}
			before = view
			hidden = hidden || !view.Connection("a").HiddenAt.IsZero()
		}
	}
	if !hidden {
		t.Error("no connection was ever hidden, so that nothing is proved for those")
	}
}

// The cost of a change depends on its size: of 5,000 repositories the census reads only those that
// changed, and those that share a file whose holders changed.
func TestCopyCount_readsOnlyChangedRepositories(t *testing.T) {
	t.Parallel()
	l, c, live := newLedger(t, 5000), new(Census), Live{1: true, 2: true}
	c.At(l.state.View(), live)
	if c.read != 5000 {
		t.Fatalf("the first count looks at %d repositories, want all 5000", c.read)
	}

	r := rand.New(rand.NewPCG(1, 1))
	for _, what := range []struct {
		name   string
		change func()
		most   int
	}{
		{"nothing", func() {}, 0},
		{"an index", func() { l.finish(r, 7) }, 1},
		{"ten indexes", func() {
			for id := range catalog.RepoID(10) {
				l.finish(r, 100+id)
			}
		}, 10 + 11},
		{"a failure", func() {
			l.do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: "9", Fence: l.grant(catalog.JobIndex, "9"), Error: "no"})
		}, 1},
		{"a lost mirror", func() {
			l.do(&catalog.Confirm{Node: "n1", Epoch: ledgerEpoch, Lost: []string{catalog.MirrorKey(7)}})
		}, 1},
	} {
		c.read = 0
		what.change()
		c.At(l.state.View(), live)
		if c.read > what.most {
			t.Errorf("%s: %d repositories are looked at, want at most %d", what.name, c.read, what.most)
		}
	}
}

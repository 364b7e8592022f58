package catalog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// Cached sets equal those that a walk over all repositories gives, whichever sets were used between
// the changes.
func TestCachedSet_equalsACountOverAllRepositories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b, _ := observed(t, 40)
		fence := uint64(0)
		followed := 0
		for step := range 60 {
			page := &SyncPage{Connection: "host"}
			for range 1 + rng.IntN(4) {
				n := rng.IntN(60)
				facts := RepoFacts{Visibility: []Visibility{Private, Public, Internal}[rng.IntN(3)], ExternalID: fmt.Sprint("bitbucket:h.example.com:", 100+n)}
				page.Repos = append(page.Repos, ListedRepo{Name: fmt.Sprint("h/", n), RepoFacts: facts})
			}
			if fence == 0 {
				b.do(&EnqueueJob{Kind: JobSync, Subject: "host", Urgent: true})
				fence = b.grant(JobSync, "host")
			}
			page.Fence = fence
			page.Repos = once(page.Repos)
			b.do(page)

			// A view between two changes starts a new generation.
			if rng.IntN(3) == 0 {
				continue
			}
			view := b.s.View()
			before := view.sets.current.before != nil
			asked := []func() *roaring.Bitmap{
				view.listedSet,
				view.openSet,
				view.Asked,
				func() *roaring.Bitmap { return view.openToLinkedAt(hSite) },
			}
			for i, ask := range asked {
				if rng.IntN(2) == 0 {
					continue
				}
				got := ask()
				anew := *view
				anew.sets = newSets()
				kept := view
				view = &anew
				want := ask()
				view = kept
				if !got.Equals(want) {
					t.Fatalf("seed %d, step %d: set %d is %s, want %s", seed, step, i, got, want)
				}
				if before {
					followed++
				}
			}
		}
		if followed < 10 {
			t.Errorf("seed %d: only %d sets were made of those before", seed, followed)
		}
	}
}

// once removes repositories that appear earlier in the page.
func once(list []ListedRepo) (out []ListedRepo) {
	seen := map[string]bool{}
	for _, r := range list {
		if !seen[r.Name] {
			out = append(out, r)
		}
		seen[r.Name] = true
	}
	return out
}

// A change of one repository evaluates the condition for that one only.
func TestCachedSet_updatesOnlyChangedRepositories(t *testing.T) {
	t.Parallel()
	b, _ := observed(t, 30)
	first := b.s.View()
	all := func() func(*Repo) bool { return func(*Repo) bool { return true } }
	if got := first.CachedSet("all", all).GetCardinality(); got != 30 {
		t.Fatalf("%d repositories", got)
	}

	fence := b.begin(JobSync, "host")
	b.do(&SyncPage{Connection: "host", Fence: fence, Repos: []ListedRepo{{Name: "h/new", RepoFacts: RepoFacts{Visibility: Private, ExternalID: "bitbucket:h.example.com:999"}}}})
	looked := 0
	set := b.s.View().CachedSet("all", func() func(*Repo) bool {
		return func(*Repo) bool { looked++; return true }
	})
	if looked != 1 || set.GetCardinality() != 31 || first.CachedSet("all", all).GetCardinality() != 30 {
		t.Errorf("looked at %d, the set has %d", looked, set.GetCardinality())
	}
}

// Old generations are released.
func TestCachedSet_releasesOldGenerations(t *testing.T) {
	t.Parallel()
	b, _ := observed(t, 3)
	fence := b.begin(JobSync, "host")
	for i := range 5 * maxGenerations {
		b.s.View().listedSet()
		b.s.View().openSet()
		b.do(&SyncPage{Connection: "host", Fence: fence, Repos: []ListedRepo{{Name: fmt.Sprint("h/n", i), RepoFacts: RepoFacts{Visibility: Private, ExternalID: fmt.Sprint("bitbucket:h.example.com:", 900+i)}}}})
	}
	depth := 0
	for at := b.s.View().sets.current; at.before != nil; at = at.before {
		depth++
	}
	if depth > maxGenerations {
		t.Errorf("%d generations are kept", depth)
	}
}

// The permission setting changes with the members, so cached sets of the old setting do not count.
func TestCachedSet_followsThePermissionSetting(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	raw := strings.Replace(string(b.s.View().Config().Raw), `"all":true`, `"all":true,"enforcePermissions":true`, 1)
	b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"host", "bitbucket", "1"}}})
	b.do(&SayPermissionSync{Node: "n1", Permissions: PermissionSyncOff})
	b.do(&SetGrants{Account: "ann", Source: GrantedByOwner, Add: ids[:1]})
	if got := b.s.View().Visible(Guest()).GetCardinality(); got != 2 {
		t.Fatalf("a guest sees %d while nothing is enforced", got)
	}
	if got := b.sees("ann"); len(got) != 2 {
		t.Fatalf("ann sees %v while nothing is enforced", got)
	}

	b.member("n2")
	if got := b.s.View().Visible(Guest()).GetCardinality(); got != 0 {
		t.Errorf("a guest sees %d beside a node that was told nothing", got)
	}
	if got := b.sees("ann"); len(got) != 1 {
		t.Errorf("ann sees %v beside a node that was told nothing", got)
	}
}

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

// site is a code host in memory, by repository number, with the faults of its listings.
type site struct {
	has     map[int]string // name by number
	hidden  map[int]bool   // exist, but are missing in listings
	left    map[int]bool   // left out by the connection
	moved   map[int]bool   // no longer selected by the connection
	private map[int]bool   // not public
	size    int64          // of each repository
	storm   bool           // many are hidden, until the next change
	come    int            // below this number they are listed even for a broken target
	broken  []string       // targets that cannot be listed
	silent  bool           // look-ups fail
	code    host.Code      // failure of broken targets; "": unreachable
	until   time.Time      // when the host allows calls again
	lookups int
}

func (s *site) repo(n int) host.Repo {
	name := s.has[n]
	seen := host.Public
	if s.private[n] {
		seen = host.Private
	}
	return host.Repo{
		Visibility: seen, SizeBytes: s.size, ExternalID: "gitea:h:" + strconv.Itoa(n), Name: "h/" + name, Remote: git.Remote{URL: "https://h/" + name + ".git"},
		Target: "orgs/" + name[:strings.Index(name, "/")],
	}
}

// List implements host.Host.
func (s *site) List(ctx context.Context, sink host.Sink) error {
	for _, t := range s.broken {
		sink.Issue(host.Issue{Code: cmp.Or(s.code, host.Unreachable), Target: t, Text: "it failed", Partial: true, Until: s.until})
	}
	for n := range 1000 {
		_, ok := s.has[n]
		switch {
		case !ok || s.hidden[n] || s.moved[n]:
		case slices.Contains(s.broken, s.repo(n).Target) && n >= s.come:
		case s.left[n]:
			sink.Skip(s.repo(n).ExternalID, host.ByArchive)
		default:
			if err := sink.Repo(ctx, s.repo(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lookup implements host.Finder.
func (s *site) Lookup(_ context.Context, id string) (host.Repo, bool, error) {
	s.lookups++
	n, _ := strconv.Atoi(id[strings.LastIndex(id, ":")+1:])
	if s.silent {
		return host.Repo{}, false, errors.New("the host is silent")
	}
	if _, ok := s.has[n]; !ok {
		return host.Repo{}, false, host.ErrGone
	}
	return s.repo(n), !s.moved[n], nil
}

// sync lists the site into the catalog, like a sync job.
func (w *world) sync(s *site) {
	w.t.Helper()
	w.syncBy(s)
}

// syncBy lists a host into the catalog.
func (w *world) syncBy(s host.Host) {
	w.t.Helper()
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "a", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "a", Node: "n1", Epoch: clustertest.Epoch, Deadline: w.Now().Add(time.Hour)})
	j := w.View().Job(catalog.JobSync, "a")
	known := w.View().Connection("a")
	l := newListing(w.View, func(_ context.Context, c catalog.Command) error { w.Do(c); return nil }, j)
	defer l.resetGC()
	if err := s.List(w.t.Context(), l); err != nil {
		w.t.Fatal(err)
	}
	if err := l.flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	fin, err := l.finishCommand(w.t.Context(), s, known, w.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.Do(fin)
}

// listed returns the repositories of the connection in the catalog, by name.
func (w *world) listed() string {
	var out []string
	for r := range w.View().ReposByName() {
		if !r.Orphaned() {
			out = append(out, strings.TrimPrefix(r.Name, "h/"))
		}
	}
	return strings.Join(out, " ")
}

// repos returns a site with n repositories in one organisation.
func repos(n int) *site {
	s := &site{has: map[int]string{}, hidden: map[int]bool{}, left: map[int]bool{}, moved: map[int]bool{}, private: map[int]bool{}}
	for i := range n {
		s.has[i] = fmt.Sprintf("x/%03d", i)
	}
	return s
}

func TestListingJob_removesMissingRepositories(t *testing.T) {
	t.Parallel()
	count := func(w *world) int { return len(strings.Fields(w.listed())) }
	for name, c := range map[string]struct {
		before int
		then   func(s *site)
		want   int    // repositories after the listing
		warns  string // part of a warning
	}{
		"gone at the host":                    {10, func(s *site) { delete(s.has, 3) }, 9, ""},
		"missing from the listing, but there": {10, func(s *site) { s.hidden[3] = true }, 10, "the host still does"},
		"nobody can tell":                     {10, func(s *site) { s.hidden[3] = true; s.silent = true }, 10, ""},
		"moved to where it is not chosen":     {10, func(s *site) { s.moved[3] = true }, 9, ""},
		"left out since it was archived":      {10, func(s *site) { s.left[3] = true }, 9, ""},
		"its target could not be listed":      {10, func(s *site) { delete(s.has, 3); s.broken = []string{"orgs/x"} }, 10, "it failed"},
		"the whole listing is in part":        {10, func(s *site) { delete(s.has, 3); s.broken = []string{""} }, 10, "it failed"},
		"twenty of fifty":                     {50, func(s *site) { remove(s, 20) }, 30, ""},
		"twenty-one of fifty are held":        {50, func(s *site) { remove(s, 21) }, 50, "21 of 50 repositories are missing"},
		"twenty-one of two hundred go":        {200, func(s *site) { remove(s, 21) }, 179, ""},
		"all of many are held":                {100, func(s *site) { remove(s, 100) }, 100, "100 of 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneConnection, 1)
			s := repos(c.before)
			w.sync(s)
			if got := count(w); got != c.before {
				t.Fatalf("%d repositories after the first listing, want %d", got, c.before)
			}
			c.then(s)
			w.sync(s)
			warnings := strings.Join(w.View().Connection("a").Warnings, "\n")
			if got := count(w); got != c.want || !strings.Contains(warnings, c.warns) {
				t.Errorf("%d repositories, want %d; warnings: %s", got, c.want, warnings)
			}
		})
	}
}

func remove(s *site, n int) {
	for i := range n {
		delete(s.has, i)
	}
}

func TestListingJob_removesManyRepositoriesOnlyAfterASecondListing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	s := repos(100)
	w.sync(s)
	remove(s, 60)
	for _, step := range []struct {
		after time.Duration
		want  int
		held  uint32
	}{{0, 100, 60}, {30 * time.Minute, 100, 60}, {31 * time.Minute, 40, 0}} {
		w.Pass(step.after)
		w.sync(s)
		if got := len(strings.Fields(w.listed())); got != step.want || w.View().Connection("a").Held != step.held {
			t.Fatalf("after %v more: %d repositories, %d held; want %d, %d", step.after, got, w.View().Connection("a").Held, step.want, step.held)
		}
	}
	if s.lookups > 0 {
		t.Errorf("%d look-ups", s.lookups)
	}
}

// A listing that lacks something is repeated when that may help, not after the whole interval of a
// day.
func TestListingJob_incompleteListingIsRepeatedSoon(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		then func(w *world, s *site)
		want time.Duration // until the next listing
	}{
		"all is there":               {func(*world, *site) {}, day},
		"a target failed":            {func(_ *world, s *site) { s.broken = []string{"orgs/x"} }, 10 * time.Minute},
		"the host set a limit":       {func(w *world, s *site) { s.broken, s.until = []string{"orgs/x"}, w.Now().Add(40*time.Minute) }, 40 * time.Minute},
		"a target is not there":      {func(_ *world, s *site) { s.broken, s.code = []string{"orgs/y"}, host.TargetNotFound }, day},
		"much is missing":            {func(_ *world, s *site) { remove(s, 60) }, time.Hour},
		"much is missing, then told": {func(w *world, s *site) { remove(s, 60); w.sync(s); w.Pass(20 * time.Minute) }, 40 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneConnection, 1)
			s := repos(100)
			w.sync(s)
			c.then(w, s)
			w.sync(s)
			conn := w.View().Connection("a")
			next := NextSync(w.View().File().Settings, conn, w.View().Job(catalog.JobSync, "a"))
			if got := next.Sub(w.Now()).Round(time.Second); got != c.want {
				t.Errorf("the next listing comes after %v, want %v; issues %+v", got, c.want, conn.Issues)
			}
		})
	}
}

// A token that expires within two weeks gives one warning.
func TestListingJob_warnsOfATokenThatExpiresSoon(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for days, want := range map[int]int{13: 1, 15: 0, -1: 1} {
		if got := expiryWarning(now.AddDate(0, 0, days), now); len(got) != want {
			t.Errorf("%d days before its end: %+v", days, got)
		}
	}
	if got := expiryWarning(time.Time{}, now); got != nil {
		t.Errorf("of a token without an end: %+v", got)
	}
}

func TestListingJob_ownerMayAcceptAShrunkenListing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	s := repos(100)
	w.sync(s)
	remove(s, 60)
	w.sync(s)
	w.Do(&catalog.AcceptListing{Connection: "a"})
	w.sync(s)
	if got := len(strings.Fields(w.listed())); got != 40 {
		t.Fatalf("%d repositories after an owner accepted the listing, want 40", got)
	}

	// The acceptance holds only for that listing.
	remove(s, 99)
	w.sync(s)
	if got := len(strings.Fields(w.listed())); got != 40 {
		t.Fatalf("%d repositories after the next listing shrank, want 40", got)
	}
}

// TestListingJob_neverRemovesWhatTheHostHas runs random histories of a host: it adds, deletes, renames, swaps
// and hides repositories, often many at once, and fails at times.
func TestListingJob_neverRemovesWhatTheHostHas(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, oneConnection, 1)
		s := repos(rng.IntN(60))
		w.sync(s)
		numbers := map[string]catalog.RepoID{}
		for r := range w.View().Repos() {
			numbers[r.ExternalID] = r.ID
		}
		for range 25 {
			s.change(rng)
			w.Pass(time.Duration(rng.IntN(50)) * time.Minute)
			w.sync(s)
			w.agrees(s, numbers, seed)
		}

		// Once the host shows everything again, the catalog has the same repositories.
		s.hidden, s.broken, s.silent = map[int]bool{}, nil, false
		for range 2 {
			w.sync(s)
			w.Pass(2 * time.Hour)
		}
		var want []string
		for _, name := range s.has {
			want = append(want, name)
		}
		slices.Sort(want)
		if got := w.listed(); got != strings.Join(want, " ") {
			t.Fatalf("seed %d: the catalog has\n%s\nthe host has\n%s", seed, got, strings.Join(want, " "))
		}
	}
}

// change makes a random change at the host.
func (s *site) change(rng *rand.Rand) {
	// A mass disappearance ends with the next listing, within the hour.
	happens := rng.IntN(9)
	if s.storm {
		s.hidden, s.storm = map[int]bool{}, false
		happens %= 8
	}

	n := rng.IntN(80)
	_, there := s.has[n]
	switch happens {
	case 0, 1:
		if !there {
			s.has[n] = fmt.Sprintf("y/new%03d", n)
		}
	case 2:
		delete(s.has, n)
	case 3:
		if there {
			s.has[n] = fmt.Sprintf("x/renamed%03d-%d", n, rng.IntN(1000))
		}
	case 4:
		if m := rng.IntN(80); there && s.has[m] != "" {
			s.has[n], s.has[m] = s.has[m], s.has[n]
		}
	case 5:
		s.hidden[n] = !s.hidden[n]
	case 6:
		s.silent = !s.silent
	case 7:
		s.broken = [][]string{nil, {"orgs/x"}, {"orgs/y"}, {""}}[rng.IntN(4)]
		s.code = []host.Code{host.Unreachable, host.TargetNotFound, host.Forbidden}[rng.IntN(3)]
		s.come = rng.IntN(80)
	case 8:
		s.storm = true
		for range 60 {
			s.hidden[rng.IntN(80)] = true
		}
	}
}

// agrees fails if a repository that the host still has was removed, or got another number.
func (w *world) agrees(s *site, numbers map[string]catalog.RepoID, seed uint64) {
	w.t.Helper()
	view := w.View()
	for n := range s.has {
		id := "gitea:h:" + strconv.Itoa(n)
		before, known := numbers[id]
		r := view.RepoByExternalID(id)
		if !known {
			if r != nil && !r.Orphaned() {
				numbers[id] = r.ID
			}
			continue
		}
		if r == nil || r.Orphaned() || r.ID != before {
			w.t.Fatalf("seed %d: the host has %s (number %d), the catalog has %+v", seed, s.has[n], n, r)
		}
	}
	for id := range numbers {
		n, _ := strconv.Atoi(id[strings.LastIndex(id, ":")+1:])
		if _, ok := s.has[n]; !ok {
			delete(numbers, id)
		}
	}
}

// A listing without news writes only its end. A single change is written alone, and missing
// repositories are still removed.
func TestListingJob_unchangedListingWritesOneEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "gitea", "url": "https://h.example", "orgs": ["x"]}}}`, 1)
	s := repos(1200)
	w.sync(s)
	entries := func() uint64 {
		before := w.View().Index()
		w.sync(s)
		return w.View().Index() - before
	}
	const job = 3 // enqueue, grant, end
	if n := entries(); n != job {
		t.Errorf("without a change %d entries are written, want %d", n, job)
	}
	s.has[7] = "x/renamed"
	if n := entries(); n != job+1 {
		t.Errorf("with one change %d entries are written, want %d", n, job+1)
	}
	delete(s.has, 8)
	if n := entries(); n != job || strings.Contains(w.listed(), "x/008") || len(strings.Fields(w.listed())) != 999 {
		t.Errorf("with one gone %d entries are written, and %d repositories are left", n, len(strings.Fields(w.listed())))
	}
	if c := w.View().Connection("a"); c.Repos != 999 {
		t.Errorf("the connection says that it lists %d", c.Repos)
	}
}

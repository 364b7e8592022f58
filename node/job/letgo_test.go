package job

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// two returns a site with two organisations: x with n repositories from 0 on, y with three from 900
// on.
func two(n int) *site {
	s := repos(n)
	for i := range 3 {
		s.has[900+i] = fmt.Sprintf("y/%03d", i)
	}
	return s
}

// of returns how many repositories of an organisation are listed.
func (w *world) of(owner string) (n int) {
	for _, name := range strings.Fields(w.listed()) {
		if strings.HasPrefix(name, owner+"/") {
			n++
		}
	}
	return n
}

// Whatever the failure of a target, all its repositories stay, changes listed before the failure
// count, and other targets are listed normally.
func TestListingJob_failedTargetKeepsItsRepositories(t *testing.T) {
	t.Parallel()
	for _, code := range []host.Code{
		host.TargetNotFound, host.Forbidden, host.Unreachable, host.RateLimited, host.SSORequired, host.ScopeMissing,
		host.AuthenticationFallback, host.InvalidResponse, host.PartialListing,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneConnection, 1)
			s := two(10)
			w.sync(s)

			// The listing of x stops at number 5, that of y is complete.
			s.broken, s.code, s.come = []string{"orgs/x"}, code, 5
			delete(s.has, 8)
			delete(s.has, 900)
			s.has[4], s.private[3] = "x/renamed", true
			s.has[903] = "y/new"
			w.Pass(time.Hour)
			w.sync(s)

			view := w.View()
			if w.of("x") != 10 || w.of("y") != 3 {
				t.Errorf("%d of x and %d of y, want 10 and 3: %s", w.of("x"), w.of("y"), w.listed())
			}
			if r := view.RepoByName("h/x/renamed"); r == nil {
				t.Error("a new name was not taken over")
			}
			if r := view.RepoByName("h/x/003"); r == nil || r.Public || r.Visibility != catalog.Private {
				t.Errorf("what went private is still open: %+v", r)
			}
			if view.RepoByName("h/y/new") == nil {
				t.Error("a new one of the other target was not taken over")
			}
			if c := view.Connection("a"); c.Repos != 13 || c.SyncedAt.Sub(c.WholeAt) != time.Hour {
				t.Errorf("%d repositories, listed %v after it was listed whole; want 13 and an hour", c.Repos, c.SyncedAt.Sub(c.WholeAt))
			}
		})
	}
}

// A target that has not existed for seven days counts as missing. Its repositories stay until a
// second listing agrees, or an owner accepts.
func TestListingJob_targetMissingForSevenDaysNeedsConfirmation(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	gone := func(s *site) { s.broken, s.code = []string{"orgs/x"}, host.TargetNotFound }
	for name, c := range map[string]struct {
		story func(w *world, s *site)
		want  int // repositories of x
		held  uint32
	}{
		"for six days":               {func(w *world, s *site) { w.each(s, 6, day) }, 5, 0},
		"for seven days":             {func(w *world, s *site) { w.each(s, 7, day) }, 5, 5},
		"for seven days and an hour": {func(w *world, s *site) { w.each(s, 7, day); w.each(s, 1, time.Hour) }, 0, 0},
		"for seven days, then an owner says so": {func(w *world, s *site) {
			w.each(s, 7, day)
			w.Do(&catalog.AcceptListing{Connection: "a"})
			w.sync(s)
		}, 0, 0},
		"with a day between when it was there": {func(w *world, s *site) {
			w.each(s, 4, day)
			s.broken = nil
			w.each(s, 1, day)
			gone(s)
			w.each(s, 5, day)
		}, 5, 0},
		"with a day between when the host could not be reached": {func(w *world, s *site) {
			w.each(s, 4, day)
			s.code = host.Unreachable
			w.each(s, 1, day)
			gone(s)
			w.each(s, 5, day)
		}, 5, 0},
		"held, and then there again": {func(w *world, s *site) {
			w.each(s, 7, day)
			s.broken = nil
			w.each(s, 1, 2*time.Hour)
		}, 5, 0},
		"unreachable for a month": {func(w *world, s *site) { s.code = host.Unreachable; w.each(s, 30, day) }, 5, 0},
		"forbidden for a month":   {func(w *world, s *site) { s.code = host.Forbidden; w.each(s, 30, day) }, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneConnection, 1)
			s := two(5)
			w.sync(s)
			gone(s)
			if !strings.Contains(name, "month") {
				w.sync(s)
			}
			c.story(w, s)

			known := w.View().Connection("a")
			if w.of("x") != c.want || known.Held != c.held || w.of("y") != 3 {
				t.Errorf("%d of x, %d of y, %d held; want %d, 3 and %d; issues %+v", w.of("x"), w.of("y"), known.Held, c.want, c.held, known.Issues)
			}
			if s.lookups > 0 {
				t.Errorf("%d look-ups: an owner that cannot be seen has no repositories that can", s.lookups)
			}
		})
	}
}

// each lists n times, with a pause before each.
func (w *world) each(s *site, n int, after time.Duration) {
	w.t.Helper()
	for range n {
		w.Pass(after)
		w.sync(s)
	}
}

// A repository that is missing only in the second listing is not removed with the others.
func TestListingJob_laterMissingRepositoryWaitsAgain(t *testing.T) {
	t.Parallel()
	hide := func(s *site, from, to int) {
		for n := from; n < to; n++ {
			s.hidden[n] = true
		}
	}
	for name, c := range map[string]struct {
		later func(s *site)
		want  int // after the second listing
		held  uint32
		last  int // after a third listing, an hour later
	}{
		"the same":                  {func(*site) {}, 70, 0, 70},
		"forty more":                {func(s *site) { hide(s, 30, 70) }, 70, 40, 30},
		"five more, still there":    {func(s *site) { hide(s, 30, 35) }, 70, 0, 70},
		"others in their place":     {func(s *site) { s.hidden = map[int]bool{}; hide(s, 50, 80) }, 100, 30, 70},
		"some of them, others gone": {func(s *site) { s.hidden = map[int]bool{}; hide(s, 0, 10); delete(s.has, 99) }, 99, 0, 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneConnection, 1)
			s := repos(100)
			w.sync(s)
			hide(s, 0, 30)
			w.sync(s)
			c.later(s)
			w.Pass(61 * time.Minute)
			w.sync(s)
			if got := w.of("x"); got != c.want || w.View().Connection("a").Held != c.held {
				t.Errorf("%d after the second listing, %d held; want %d and %d", got, w.View().Connection("a").Held, c.want, c.held)
			}
			w.Pass(59 * time.Minute)
			w.sync(s)
			if got := w.of("x"); got != c.want {
				t.Errorf("%d before the hour of the others, want %d", got, c.want)
			}
			w.Pass(2 * time.Minute)
			w.sync(s)
			if got := w.of("x"); got != c.last {
				t.Errorf("%d after the third listing, want %d", got, c.last)
			}
		})
	}
}

// If the connection was edited, its listing removes repositories at once: the user asked for it.
func TestListingJob_ofAnEditedConnectionRemovesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	s := repos(100)
	w.sync(s)
	edited := `{"connections": {"a": {"type": "gitea", "url": "https://h.example", "orgs": ["y"]}}}`
	f, err := config.Parse([]byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	w.Do(catalog.NewSetConfig([]byte(edited), f))
	remove(s, 90)
	w.sync(s)
	if got := w.of("x"); got != 10 || s.lookups > 0 {
		t.Errorf("%d repositories after %d look-ups, want 10 after none", got, s.lookups)
	}
}

// A name that returns with another id is another repository.
func TestListingJob_sameNameWithAnotherIDIsAnotherRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	s := repos(3)
	w.sync(s)
	before := w.View().RepoByName("h/x/001")

	s.has[500] = s.has[1]
	delete(s.has, 1)
	w.sync(s)
	after := w.View().RepoByName("h/x/001")
	if after == nil || after.ID == before.ID || after.ExternalID != "gitea:h:500" || after.Indexed() {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if old := w.View().Repo(before.ID); old != nil && !old.Orphaned() {
		t.Errorf("the old one is still listed: %+v", old)
	}
}

// A removed repository is no longer searched, keeps its data for the grace period, and returns with
// its number if it is listed again in time.
func TestListingJob_removedRepositoryKeepsItsDataForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"settings": {"repoGarbageCollectionGracePeriodMs": 3600000}, "connections": {"a": {"type": "gitea", "url": "https://h.example", "orgs": ["x"]}}}`, 1)
	s := repos(3)
	w.sync(s)
	id := w.View().RepoByName("h/x/001").ID
	name := s.has[1]
	delete(s.has, 1)
	w.sync(s)

	collects := func() bool { return strings.Contains(w.plan(), fmt.Sprintf("collect %d", id)) }
	if r := w.View().Repo(id); r == nil || !r.Orphaned() || collects() {
		t.Fatalf("right after it was let go of: %+v", r)
	}
	w.Pass(59 * time.Minute)
	if collects() {
		t.Error("its data goes before the time of grace has passed")
	}

	s.has[1] = name
	w.sync(s)
	if r := w.View().RepoByName("h/x/001"); r == nil || r.ID != id || r.Orphaned() {
		t.Errorf("listed again: %+v", r)
	}
	delete(s.has, 1)
	w.sync(s)
	w.Pass(61 * time.Minute)
	if !collects() {
		t.Error("its data stays after the time of grace")
	}
}

// syncJob runs a sync job with a real client against a server.
func (w *world) syncJob(tools host.Tools) error {
	w.t.Helper()
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "a", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "a", Node: "n1", Epoch: clustertest.Epoch, Deadline: w.Now().Add(time.Hour)})
	job := w.View().Job(catalog.JobSync, "a")
	s := &syncer{hosts: tools, log: slog.New(slog.DiscardHandler), now: w.Now}
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	err := s.runJob(ctx, &attempt{job: job, cluster: w.Node("n1"), cancel: cancel})
	if err != nil {
		w.Apply(&catalog.ReleaseJob{Kind: catalog.JobSync, Subject: "a", Fence: job.Fence})
	}
	return err
}

// A connection has a single target on a server. While it cannot be listed, nothing is removed, and
// what came before the failure counts.
func TestListingJob_failureOfTheOnlyTargetRemovesNothing(t *testing.T) {
	t.Parallel()
	made := func() (all []hosttest.Repo) {
		for i := range 5 {
			all = append(all, hosttest.Repo{ID: int64(i + 1), Owner: "acme", Name: fmt.Sprint("r", i), Branch: "main"})
		}
		return all
	}
	start := func(t *testing.T) (*world, *hosttest.Server, host.Tools) {
		s := hosttest.Start(t, hosttest.Gitea(), made()...)
		w := newWorld(t, `{"connections": {"a": {"type": "gitea", "url": "`+s.URL+`", "token": {"env": "T"}, "orgs": ["acme"]}}}`, 1)
		tools := scaleTools(&served{by: s.Transport()})
		if err := w.syncJob(tools); err != nil {
			t.Fatal(err)
		}
		return w, s, tools
	}
	there := func(w *world) int { return len(strings.Fields(w.listed())) }

	t.Run("a refused token", func(t *testing.T) {
		t.Parallel()
		w, s, tools := start(t)
		s.Do(func(s *hosttest.State) { *s.Token = "another" })
		for range 40 {
			w.Pass(24 * time.Hour)
			if err := w.syncJob(tools); err == nil {
				t.Fatal("a refused token is no error")
			}
		}
		if there(w) != 5 {
			t.Errorf("%d repositories, want 5", there(w))
		}
	})

	t.Run("a failure in the middle", func(t *testing.T) {
		t.Parallel()
		w, s, tools := start(t)
		s.Do(func(s *hosttest.State) {
			(*s.Repos)[0].Private = true
			*s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("page") != "2" {
					return false
				}
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		})
		err := w.syncJob(tools)
		r := slices.Collect(w.View().ReposByName())[0]
		if err == nil || there(w) != 5 || r.Public || !strings.HasSuffix(r.Name, "/r0") {
			t.Errorf("%v, %d repositories, the first is %+v", err, there(w), r)
		}
	})

	t.Run("not there for seven days", func(t *testing.T) {
		t.Parallel()
		w, s, tools := start(t)
		s.Do(func(s *hosttest.State) { *s.Repos = nil })
		for _, step := range []struct {
			after time.Duration
			want  int
			held  uint32
		}{{0, 5, 0}, {6 * 24 * time.Hour, 5, 0}, {24 * time.Hour, 5, 5}, {time.Hour, 0, 0}} {
			w.Pass(step.after)
			err := w.syncJob(tools)
			c := w.View().Connection("a")
			if err != nil || there(w) != step.want || c.Held != step.held || !slices.ContainsFunc(c.Issues, func(i catalog.ListingIssue) bool { return i.Code == string(host.TargetNotFound) }) {
				t.Fatalf("after %v more: %v, %d repositories, %d held, issues %+v", step.after, err, there(w), c.Held, c.Issues)
			}
		}

		// Nothing is left to remove, so from now on it is a mistake in the configuration.
		if err := w.syncJob(tools); err == nil || w.View().Connection("a").Held != 0 {
			t.Errorf("a connection of nothing: %v", err)
		}
	})
}

// If a listing does not tell a size, the known size stays.
func TestListingJob_doesNotForgetTheSizeIfNoneIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	s := repos(1)
	w.sync(s)
	id := w.View().RepoByName("h/x/000").ID
	for _, step := range []struct{ told, want int64 }{{0, 0}, {7000, 7000}, {0, 7000}, {9000, 9000}} {
		s.size = step.told
		w.sync(s)
		if got := w.View().Repo(id).SizeBytes; got != uint64(step.want) {
			t.Errorf("told %d: %d, want %d", step.told, got, step.want)
		}
	}
}

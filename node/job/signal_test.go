package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard"
)

// listener is a node whose poller gets signals about repositories 1, 2, ... of a connection a. All
// are indexed, with the commit c0.
type listener struct {
	*clustertest.World
	poll *Poller
}

func newListener(t *testing.T, connection string, nodes, repos int, busy func(catalog.RepoID) bool) *listener {
	t.Helper()
	l := &listener{World: clustertest.New(t, `{"settings": {"maxRepoIndexingJobConcurrency": 2}, "connections": {"a": `+connection+`}}`, nodes)}
	fence := l.Grant(catalog.JobSync, "a", "n1")
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for i := range repos {
		page.Repos = append(page.Repos, catalog.ListedRepo{
			Name: fmt.Sprintf("h/x/r%d", i+1), Target: "orgs/x", RepoFacts: catalog.RepoFacts{ExternalID: fmt.Sprintf("gitea:h:%d", i+1)},
		})
	}
	l.Do(page, &catalog.FinishSync{Connection: "a", Fence: fence, Hash: l.View().Connection("a").Hash, Complete: true, Listed: uint32(repos)})
	for i := range repos {
		id := catalog.RepoID(i + 1)
		fence := l.Grant(catalog.JobIndex, catalog.RepoSubject(id), "n1")
		l.Do(&catalog.FinishIndex{
			Repo: id, Fence: fence, Holder: "n1", InputKey: wantedKey("o", l.View(), l.View().Repo(id)) + ".x",
			Revisions: []catalog.Revision{{Name: "refs/heads/main", Commit: "c0"}},
		})
	}
	l.poll = newPoller(l.Node("n1"), nil, nil, func() string { return "o" }, busy, l.Now)
	return l
}

const (
	oneOrganisation = `{"type": "gitea", "url": "https://h.example", "orgs": ["x"]}`
	noSignal        = `{"type": "git", "url": "file:///x"}`
)

// A mark is new if it differs from the last one, and after a start if the index does not include
// it.
func TestPushSignal_isNewUnlessTheIndexIncludesIt(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) host.Mark { return host.Mark{At: time.Unix(1_700_000_000, 0).Add(d)} } // relative to the time of the index
	commits := func(ids ...string) host.Mark { return host.Mark{Commits: ids} }
	for _, c := range []struct {
		what  string
		marks []host.Mark
		news  []bool
	}{
		{"a push long before the index", []host.Mark{at(-clockSlack - 1)}, []bool{false}},
		{"a push that may be later, by another clock", []host.Mark{at(-clockSlack)}, []bool{true}},
		{"the same push again", []host.Mark{at(0), at(0)}, []bool{true, false}},
		{"a push, and a later one", []host.Mark{at(0), at(time.Second)}, []bool{true, true}},
		{"another than the last, though it is old", []host.Mark{at(-time.Hour), at(-2 * time.Hour)}, []bool{false, true}},
		{"the commit that is indexed", []host.Mark{commits("c9", "c0")}, []bool{false}},
		{"another commit", []host.Mark{commits("c1")}, []bool{true}},
		{"another commit, then back", []host.Mark{commits("c1"), commits("c0")}, []bool{true, true}},
		{"as many commits, told twice", []host.Mark{commits("c1", "c2"), commits("c1", "c2")}, []bool{true, false}},
	} {
		l := newListener(t, oneOrganisation, 1, 1, nil)
		for i, mark := range c.marks {
			mark.ExternalID = "gitea:h:1"
			l.poll.Hear(&Signal{Connection: "a", Sure: true, Targets: []string{"orgs/x"}, Every: time.Minute, Marks: []host.Mark{mark}})
			due := l.poll.duePolls(10)
			if (len(due) == 1) != c.news[i] {
				t.Errorf("%s: mark %d is news: %v, want %v", c.what, i+1, len(due) == 1, c.news[i])
			}
			for _, id := range due {
				l.poll.recordPoll(id, "", false, false)
			}
		}
	}
}

// A repository is not polled while its host reports pushes to it.
func TestPolling_isRareWhileTheHostReportsPushes(t *testing.T) {
	t.Parallel()
	good := Signal{Connection: "a", Sure: true, Targets: []string{"orgs/x"}, Every: time.Minute}
	with := func(change func(s *Signal)) *Signal {
		s := good
		change(&s)
		return &s
	}
	for _, c := range []struct {
		what, connection string
		signal           *Signal
		later            time.Duration
		want             bool
	}{
		{"a start, and no word yet", oneOrganisation, nil, reportGrace - 1, true},
		{"and for too long", oneOrganisation, nil, reportGrace, false},
		{"a host that tells nothing", noSignal, nil, 0, false},
		{"told", oneOrganisation, &good, 0, true},
		{"two looks are late", oneOrganisation, &good, 2*time.Minute + reportGrace - 1, true},
		{"and more than that", oneOrganisation, &good, 2*time.Minute + reportGrace, false},
		{"of something else", oneOrganisation, with(func(s *Signal) { s.Targets = []string{"orgs/y"} }), 0, false},
		{"of another connection", oneOrganisation, with(func(s *Signal) { s.Connection = "b" }), reportGrace, false},
		{"some pushes only", oneOrganisation, with(func(s *Signal) { s.Sure = false }), 0, false},
		{"the look failed", oneOrganisation, with(func(s *Signal) { s.Problem = "no" }), 0, false},
	} {
		l := newListener(t, c.connection, 1, 1, nil)
		if c.signal != nil {
			l.poll.Hear(c.signal)
		}
		l.Pass(c.later)
		if got := l.poll.reportsPushes(l.View(), l.View().Repo(1), l.Now()); got != c.want {
			t.Errorf("%s: the host is believed: %v, want %v", c.what, got, c.want)
		}
	}
}

// One of the live holders of a mirror polls it. Another one does if that node is lost.
func TestPoller_onlyOneHolderOfAMirrorPolls(t *testing.T) {
	t.Parallel()
	l := newListener(t, noSignal, 3, 1, nil)
	l.Confirm("n2", catalog.MirrorKey(1))
	who := func() (nodes []string) {
		for _, id := range []string{"n1", "n2", "n3"} {
			if !l.Alive(id) {
				continue
			}
			if p := newPoller(l.Node(id), nil, nil, l.poll.options, nil, l.Now); p.pollsHere(l.View(), l.View().Repo(1)) {
				nodes = append(nodes, id)
			}
		}
		return nodes
	}
	first := who()
	if len(first) != 1 || first[0] == "n3" {
		t.Fatalf("with two holders %v poll", first)
	}
	l.Lose(first[0])
	if second := who(); len(second) != 1 || second[0] == first[0] || second[0] == "n3" {
		t.Errorf("without %v, %v poll", first, second)
	}
	l.Lose("n1", "n2")
	if last := who(); last != nil {
		t.Errorf("without a holder %v poll", last)
	}
}

// The number of running polls has the limit of index jobs. The longest waiting go first.
// Repositories that left are forgotten.
func TestPoller_limitsRunningPolls(t *testing.T) {
	t.Parallel()
	l := newListener(t, noSignal, 1, 4, nil)
	for id, ago := range map[catalog.RepoID]time.Duration{1: 3 * time.Hour, 2: 5 * time.Hour, 3: 4 * time.Hour, 4: 2 * time.Hour} {
		l.poll.polls[id] = poll{at: l.Now().Add(48*time.Hour - ago)}
	}
	l.poll.polls[99] = poll{}
	l.Pass(48 * time.Hour)

	first := l.poll.duePolls(2)
	if slices.Sort(first); !slices.Equal(first, []catalog.RepoID{2, 3}) {
		t.Errorf("%v are polled first, want 2 and 3", first)
	}
	if more := l.poll.duePolls(2); len(more) != 0 {
		t.Errorf("while two polls run %v are polled too", more)
	}
	l.poll.recordPoll(3, "", false, false)
	if more := l.poll.duePolls(2); !slices.Equal(more, []catalog.RepoID{1}) {
		t.Errorf("when one has ended %v are polled, want 1", more)
	}
	if _, kept := l.poll.polls[99]; kept {
		t.Error("a repository that has left is remembered")
	}
}

// A look at all repositories that found nothing is followed by a pause that grows with
// their number. A push ends it.
func TestPoller_skipsItsRoundsUntilARepositoryIsDue(t *testing.T) {
	t.Parallel()
	const repos = 40
	calm := func() *listener {
		l := newListener(t, oneOrganisation, 1, repos, nil)
		l.Pass(48 * time.Hour)
		for id := range catalog.RepoID(repos) {
			l.poll.polls[id+1] = poll{at: l.Now()}
		}
		if due := l.poll.duePolls(2); len(due) != 0 {
			t.Fatalf("%v are polled though nothing is due", due)
		}
		l.poll.polls[1] = poll{at: l.Now().Add(-48 * time.Hour)}
		l.Pass(hold.Rest(repos) - time.Millisecond)
		if due := l.poll.duePolls(2); len(due) != 0 {
			t.Errorf("%v are polled within the pause", due)
		}
		return l
	}

	l := calm()
	l.Pass(othersPause)
	if due := l.poll.duePolls(2); !slices.Equal(due, []catalog.RepoID{1}) {
		t.Errorf("%v are polled after the pause, want 1", due)
	}

	l = calm()
	l.poll.Hear(&Signal{Connection: "a", Sure: true, Targets: []string{"orgs/x"}, Every: time.Minute, Marks: []host.Mark{{ExternalID: "gitea:h:7", Commits: []string{"c1"}}}})
	if due := l.poll.duePolls(2); !slices.Contains(due, 7) {
		t.Errorf("%v are polled after a push, want 7 among them", due)
	}
}

// A round makes as many polls as there is CPU for, even if few may run at a time.
func TestPoller_makesManyPollsInARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most, looks atomic.Int64
		l := newListener(t, noSignal, 1, 40, func(catalog.RepoID) bool {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Millisecond)
			running.Add(-1)
			looks.Add(1)
			return true // an attempt works on it, so there is nothing to fetch
		})
		l.Pass(l.View().File().Settings.ReindexInterval)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.poll.Run(ctx) }()
		time.Sleep(l.View().File().Settings.ReindexRepoPollingInterval / 2)
		if looks.Load() != 40 || most.Load() != 2 {
			t.Errorf("within a round there are %d looks, %d at once; want all 40, 2 at once", looks.Load(), most.Load())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Changed settings cause jobs without polls. Only few of these jobs wait at a time, and a pushed
// repository is polled as quickly as ever.
func TestPoller_changedSettingsEnqueueJobsWithoutPolls(t *testing.T) {
	t.Parallel()
	const repos = maxAnewJobs + 30
	l := newListener(t, oneOrganisation, 1, repos, nil)
	l.poll.options = func() string { return "other" }
	l.poll.Hear(&Signal{Connection: "a", Sure: true, Targets: []string{"orgs/x"}, Every: time.Minute, Marks: []host.Mark{{ExternalID: "gitea:h:7", Commits: []string{"c1"}}}})
	waiting := func() (n int) {
		for range l.View().JobsOfKind(catalog.JobIndex, catalog.JobWaiting) {
			n++
		}
		return n
	}

	if due := l.poll.duePolls(2); !slices.Equal(due, []catalog.RepoID{7}) {
		t.Errorf("%v are looked at, want 7, which was pushed to, alone", due)
	}
	l.poll.enqueueReindexes(t.Context())
	if n := waiting(); n != maxAnewJobs {
		t.Errorf("%d jobs wait, want %d at a time", n, maxAnewJobs)
	}
	l.poll.duePolls(2)
	if l.poll.enqueueReindexes(t.Context()); waiting() != maxAnewJobs {
		t.Errorf("while they wait %d jobs do, want no more of them", waiting())
	}

	// As jobs end, more are enqueued, each only once.
	for j := range l.View().JobsOfKind(catalog.JobIndex, catalog.JobWaiting) {
		fence := l.Grant(catalog.JobIndex, j.Subject, "n1")
		l.Do(&catalog.FinishIndex{Repo: catalog.SubjectRepo(j.Subject), Fence: fence, Holder: "n1", InputKey: "other"})
	}
	l.poll.duePolls(2)
	if l.poll.enqueueReindexes(t.Context()); waiting() != repos-maxAnewJobs-1 {
		t.Errorf("then %d jobs wait, want the %d that are left", waiting(), repos-maxAnewJobs-1)
	}
}

// A poll that hangs is visible, although polls have no job.
func TestRunningPolls_returnsTheLongest(t *testing.T) {
	t.Parallel()
	l := newListener(t, noSignal, 1, 2, nil)
	tell := func() string {
		running, id, began := l.poll.Polls()
		if running == 0 {
			return "none"
		}
		return fmt.Sprintf("%d, %d for %s", running, id, l.Now().Sub(began))
	}
	expect := func(when, want string) {
		t.Helper()
		if got := tell(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}

	expect("before any", "none")
	l.poll.polls[1], l.poll.polls[2] = poll{at: l.Now()}, poll{at: l.Now().Add(time.Minute)}
	l.Pass(48 * time.Hour)
	l.poll.duePolls(1)
	l.Pass(30 * time.Second)
	l.poll.duePolls(2)
	l.Pass(15 * time.Second)
	expect("beside a later one", "2, 1 for 45s")
	l.poll.recordPoll(1, "", false, false)
	expect("after its end", "1, 2 for 15s")
}

// Run polls due repositories at the polling interval.
func TestPoller_pollsAtTheConfiguredInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		polled := make(chan catalog.RepoID, 10)
		l := newListener(t, noSignal, 1, 2, func(id catalog.RepoID) bool {
			polled <- id
			return true // an attempt works on it, so there is nothing to fetch
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.poll.Run(ctx) }()
		synctest.Wait()
		if len(polled) != 0 {
			t.Errorf("right after the index %d are polled", len(polled))
		}

		l.Pass(l.View().File().Settings.ReindexInterval)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(polled) != 2 {
			t.Errorf("an interval later %d are polled, want both, once", len(polled))
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A webhook call on one node is sent to all nodes, once.
func TestPushFollower_webhookCallNotifiesAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newListener(t, noSignal, 3, 1, nil)
		l.Lose("n3")
		var told []string
		wire := make(chan string, 10)
		f := newFollower(l.Node("n1"), host.Tools{}, func(_ context.Context, node string, s *Signal) error {
			if node == "n1" {
				l.poll.Hear(s)
			}
			wire <- fmt.Sprintf("%s %s %v", node, s.Connection, s.Hook)
			return errors.New("it may have been lost")
		}, l.poll.lastLook, slog.New(slog.DiscardHandler), l.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()

		for range 2 {
			f.Called("a")
		}
		time.Sleep(10 * time.Second)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(wire)
		for word := range wire {
			told = append(told, word)
		}
		if slices.Sort(told); !slices.Equal(told, []string{"n1 a true", "n2 a true"}) {
			t.Errorf("told were %q", told)
		}
		if got := l.poll.Following("a"); !got.HookAt.Equal(l.Now()) || got.Live || !got.LastAt.IsZero() {
			t.Errorf("a call of a webhook makes %+v", got)
		}
	})
}

// A host that failed is left alone for a while, or as long as it asks for.
func TestPolling_pausesAHostAfterAFailure(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	until := func(d time.Duration) error {
		return fmt.Errorf("look: %w", &host.Refusal{Issue: host.Issue{Until: now.Add(d)}})
	}
	for want, failures := range map[time.Duration][]error{
		2 * time.Minute:  {errors.New("no"), &host.Refusal{}, until(-time.Second), until(0)},
		time.Second:      {until(time.Second)},
		40 * time.Minute: {until(40 * time.Minute)},
	} {
		for _, err := range failures {
			if got := waitAfterFailure(err, now); got != want {
				t.Errorf("%v: %v, want %v", err, got, want)
			}
		}
	}
}

// Candidates that wait for the same reason: the most searched go first, then those with the newest
// push. An earlier due time goes before all.
func TestPoller_mostSearchedAndNewestPushComeFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	repo := func(id catalog.RepoID, pushed time.Duration) *catalog.Repo {
		r := &catalog.Repo{ID: id, Shards: []catalog.ShardRef{{ID: shard.FileID{byte(id)}.String()}}}
		r.PushedAt = now.Add(pushed)
		return r
	}
	ready := []candidate{{repo: repo(1, 1), at: time.Time{}}, {repo: repo(2, 2), at: time.Time{}}, {repo: repo(3, 0), at: time.Time{}}, {repo: repo(4, 9), at: now}, {repo: repo(5, 0), at: time.Time{}}}
	used := map[shard.FileID]time.Duration{{3}: time.Second, {5}: time.Minute, {4}: time.Hour}
	p := &Poller{searched: func(file shard.FileID) time.Duration { return used[file] }}
	p.sortByUrgency(ready)
	var got []catalog.RepoID
	for _, c := range ready {
		got = append(got, c.repo.ID)
	}
	if want := []catalog.RepoID{5, 3, 2, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

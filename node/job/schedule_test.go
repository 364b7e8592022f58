package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
)

func TestNextListing_isAfterTheIntervalOrEarlier(t *testing.T) {
	t.Parallel()
	ended := time.Unix(1_800_000_000, 0)
	in := func(d time.Duration) time.Time { return ended.Add(d) }
	job := func(s catalog.JobState) *catalog.Job {
		return &catalog.Job{State: s, FinishedAt: ended, NotBefore: in(5 * time.Minute)}
	}
	whole := catalog.Connection{Hash: "h", Synced: "h"}
	soon, late := whole, whole
	soon.Again, late.Again = in(time.Hour), in(30*time.Hour)
	const day = 24 * time.Hour

	for _, c := range []struct {
		what     string
		conn     catalog.Connection
		job      *catalog.Job
		interval time.Duration
		want     time.Time
	}{
		{"never listed", whole, nil, day, time.Time{}},
		{"waiting", whole, job(catalog.JobWaiting), day, in(5 * time.Minute)},
		{"failed for now", whole, job(catalog.JobBackoff), day, in(5 * time.Minute)},
		{"running", whole, job(catalog.JobRunning), day, in(5 * time.Minute)},
		{"listed", whole, job(catalog.JobDone), day, in(day)},
		{"listed in part", catalog.Connection{Hash: "h", Synced: "g"}, job(catalog.JobDone), day, in(10 * time.Minute)},
		{"listed in part, at a short interval", catalog.Connection{Hash: "h"}, job(catalog.JobDone), time.Minute, in(time.Minute)},
		{"something is worth another look", soon, job(catalog.JobDone), day, in(time.Hour)},
		{"and the usual one comes first", late, job(catalog.JobDone), day, in(day)},
		{"failed for good", soon, job(catalog.JobFailed), day, in(day)},
	} {
		if got := NextSync(config.Settings{ResyncConnectionInterval: c.interval}, &c.conn, c.job); !got.Equal(c.want) {
			t.Errorf("%s: %v after its end, want %v", c.what, got.Sub(ended), c.want.Sub(ended))
		}
	}
}

// counting returns a world with count jobs and reachable nodes.
func counting(t *testing.T, nodes int, row Kind, subjects ...string) *world {
	t.Helper()
	w := &world{World: clustertest.New(t, oneConnection, nodes, countRow()), t: t, kinds: kinds{row}}
	for i := range nodes {
		w.nodes = append(w.nodes, hold.Node{ID: fmt.Sprintf("n%d", i+1), Epoch: clustertest.Epoch, Weight: 1, Alive: true})
	}
	for _, subject := range subjects {
		w.Do(&catalog.EnqueueJob{Kind: count, Subject: subject})
	}
	return w
}

// end ends a job successfully.
func (w *world) end(subject string) {
	w.t.Helper()
	w.Do(&catalog.FinishJob{Kind: count, Subject: subject, Fence: w.View().Job(count, subject).Fence})
}

func TestGrantJobs_mostUrgentComesFirst(t *testing.T) {
	t.Parallel()
	w := counting(t, 1, Kind{Job: count, PerCluster: always(1), Timeout: always(time.Hour)})
	for _, again := range []string{"old", "older"} {
		w.Do(&catalog.EnqueueJob{Kind: count, Subject: again})
		w.Grant(count, again, "n1")
		w.end(again)
	}
	for _, j := range []catalog.EnqueueJob{{Subject: "older"}, {Subject: "old"}, {Subject: "new"}, {Subject: "asked for", Urgent: true}, {Subject: "also new"}} {
		w.Pass(time.Second)
		j.Kind = count
		w.Do(&j)
	}

	var order []string
	for range 5 {
		subject := strings.TrimPrefix(w.plan(), "grant kind 200 ")
		order = append(order, subject)
		w.end(subject)
	}
	if got := strings.Join(order, ", "); got != "asked for, new, also new, older, old" {
		t.Errorf("the order is %s", got)
	}
}

// A plan is one log entry: what does not fit waits for the next plan.
func TestJobPlan_limitsTheCommandsOfOneLogEntry(t *testing.T) {
	t.Parallel()
	var subjects []string
	for i := range maxCommands + 44 {
		subjects = append(subjects, fmt.Sprintf("%03d", i))
	}
	w := counting(t, 1, Kind{Job: count, Timeout: always(time.Hour)}, subjects...)
	for i, want := range []int{maxCommands, 44, 0} {
		if got := strings.Count(w.plan(), "grant"); got != want {
			t.Errorf("plan %d has %d commands, want %d", i+1, got, want)
		}
	}
}

func TestRevokeJobs_revokesJobsOfLostNodesAndLateJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(w *world)
		want   string
	}{
		{func(*world) {}, ""},
		{func(w *world) { w.nodes[0].Epoch++ }, "its node has restarted"},
		{func(w *world) { w.nodes = w.nodes[1:] }, "its node was removed"},
		{func(w *world) { w.nodes[0].Alive, w.nodes[0].Silent = false, hold.LostAfter-1 }, ""},
		{func(w *world) { w.nodes[0].Alive, w.nodes[0].Silent = false, hold.LostAfter }, "its node cannot be reached"},
		{func(w *world) { w.Pass(time.Hour + lateSlack) }, ""},
		{func(w *world) { w.Pass(time.Hour + lateSlack + 1) }, "it is past its deadline"},
	} {
		w := counting(t, 2, Kind{Job: count, PerNode: always(0), Timeout: always(time.Hour)}, "x")
		w.Grant(count, "x", "n1")
		c.change(w)
		if c.want != "" {
			c.want = "revoke kind 200 x: " + c.want
		}
		if got := w.plan(); got != c.want {
			t.Errorf("the plan is %q, want %q", got, c.want)
		}
	}
}

// Between equally busy nodes the score decides, always in favour of the same node: data of the job
// may still be on its disk.
func TestChooseNode_prefersTheSameNodeForTheSameJob(t *testing.T) {
	t.Parallel()
	w := counting(t, 5, Kind{Job: count, Timeout: always(time.Hour)})
	on := map[string]string{}
	used := map[string]bool{}
	for round := range 2 {
		for _, subject := range strings.Split("abcdefghijklmnopqrst", "") {
			w.Do(&catalog.EnqueueJob{Kind: count, Subject: subject})
			w.plan()
			node := w.View().Job(count, subject).Node
			if round > 0 && node != on[subject] {
				t.Errorf("%s ran on %s and runs on %s", subject, on[subject], node)
			}
			on[subject], used[node] = node, true
			w.end(subject)
		}
	}
	if len(used) < 3 {
		t.Errorf("twenty jobs run on %d nodes of five", len(used))
	}
}

// A host with a rate limit is not asked before the limit ends. A limit that ends soon does not
// shorten the back-off.
func TestJobRetry_waitsForTheRateLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]time.Duration{10 * time.Minute: 10 * time.Minute, time.Second: 48 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var b *bench
			b = work(t, func(context.Context, *attempt) error {
				return fmt.Errorf("list: %w", &host.Refusal{Issue: host.Issue{Text: "slow down", Until: b.Now().Add(limit)}})
			})
			b.ask("x")
			if got := b.job("x").NotBefore.Sub(b.Now()); got < want || got > want*3/2 {
				t.Errorf("a limit of %v: the job is tried again after %v", limit, got)
			}
		})
	}
}

// leader runs a Leader of count jobs until the test ends, in a bubble.
func (w *world) leader(t *testing.T) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	n := w.Node("n1")
	l := newLeader(n, w.kinds, hold.NewPlacer(n, 2, log, time.Now), LeaderOptions{Log: log, Ticks: time.Now})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// where returns the node that runs job x.
func (w *world) where() string {
	if j := w.View().Job(count, "x"); j.State == catalog.JobRunning {
		return j.Node
	}
	return ""
}

// Only the leader plans when something changes.
func TestJobPlanner_runsOnlyOnTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := counting(t, 1, Kind{Job: count, Timeout: always(time.Hour)}, "x")
		w.Lead("")
		w.leader(t)
		time.Sleep(10 * time.Second)
		if got := w.where(); got != "" {
			t.Errorf("without a leader the job runs on %s", got)
		}

		w.Lead("n1")
		time.Sleep(2 * time.Second)
		if got := w.where(); got != "n1" {
			t.Errorf("with a leader the job runs on %q", got)
		}
		w.end("x")
		w.Do(&catalog.EnqueueJob{Kind: count, Subject: "x"})
		time.Sleep(2 * planPause)
		if got := w.where(); got != "n1" {
			t.Errorf("right after a change the job runs on %q", got)
		}
	})
}

// A new leader gives a silent node the full time.
func TestJobPlanner_aNewLeaderDoesNotRevokeJobsOfASilentNodeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := counting(t, 2, Kind{Job: count, Timeout: always(time.Hour)}, "x")
		w.Grant(count, "x", "n2")
		w.leader(t)
		time.Sleep(time.Second)
		w.Lose("n2")
		time.Sleep(hold.LostAfter - 5*time.Second)
		w.Lead("")
		time.Sleep(2 * time.Second)
		w.Lead("n1")
		time.Sleep(hold.LostAfter - 5*time.Second)
		if got := w.where(); got != "n2" {
			t.Errorf("before its time is over the job runs on %q", got)
		}
		time.Sleep(10 * time.Second)
		if got := w.where(); got != "n1" {
			t.Errorf("when its time is over the job runs on %q", got)
		}
	})
}

// rejectingCluster is a cluster that rejects plans.
type rejectingCluster struct {
	*clustertest.Node
	err error
}

func (s *rejectingCluster) Propose(context.Context, ...catalog.Command) (uint64, error) {
	return 0, s.err
}

// A look is repeated unless its plan was committed, or refused for good.
func TestJobPlanner_looksAgainUnlessThePlanWasCommitted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		made bool
	}{
		{nil, true},
		{&catalog.Refusal{Code: catalog.Stale}, true},
		{errors.New("no quorum"), false},
	} {
		w := newWorld(t, oneConnection, 1)
		log := slog.New(slog.DiscardHandler)
		n := &rejectingCluster{w.Node("n1"), c.err}
		l := newLeader(n, w.kinds, hold.NewPlacer(n, 2, log, w.Now), LeaderOptions{Log: log, Ticks: w.Now})
		l.plan(t.Context())
		if made := l.dueLooks(w.View(), nil, w.Now())&LookConnections == 0; made != c.made {
			t.Errorf("%v: the look was made: %v", c.err, made)
		}
	}
}

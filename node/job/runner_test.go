package job

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
)

// count is a kind of job that exists only in tests.
const count catalog.JobKind = 200

// countRow is the catalog's row of it.
func countRow() catalog.JobRow { return catalog.JobRow{Kind: count, Name: "count"} }

// countKind returns its row here, which runs a function of the test.
func countKind(run func(context.Context, *attempt) error) Kind {
	return Kind{Job: count, PerNode: always(2), Timeout: always(time.Minute), Run: run}
}

// bench is a node that runs jobs of one kind, in a synctest bubble.
type bench struct {
	*world
	runner *Runner
	ended  []string // "ok" or the error of each ended attempt

	mu sync.Mutex // guards ended
}

// work starts a node n1 of two that runs count jobs, until the test ends. The caller must be in a
// bubble.
func work(t *testing.T, run func(context.Context, *attempt) error) *bench {
	t.Helper()
	w := &world{World: clustertest.New(t, oneConnection, 2, countRow()), t: t, kinds: kinds{countKind(run)}}
	for _, id := range []string{"n1", "n2"} {
		w.nodes = append(w.nodes, hold.Node{ID: id, Epoch: clustertest.Epoch, Weight: 1, Alive: id == "n1"})
	}
	b := &bench{world: w}
	b.runner = newRunner(w.Node("n1"), hold.NewFiles(nil, nil, w.Now), w.kinds, RunnerOptions{
		Log: slog.New(slog.DiscardHandler), Now: w.Now,
		Observe: func(_ catalog.JobKind, _ time.Duration, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			word := "ok"
			if err != nil {
				word = err.Error()
			}
			b.ended = append(b.ended, word)
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.runner.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return b
}

// ask enqueues a job and plans.
func (b *bench) ask(subject string) {
	b.Do(&catalog.EnqueueJob{Kind: count, Subject: subject})
	b.plan()
	synctest.Wait()
}

// later advances the clock and plans.
func (b *bench) later(d time.Duration) {
	b.Pass(d)
	time.Sleep(d)
	b.plan()
	synctest.Wait()
}

func (b *bench) job(subject string) *catalog.Job { return b.View().Job(count, subject) }

// results returns how the attempts have ended so far.
func (b *bench) results() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.ended, ", ")
}

// good is a job that succeeds at once.
func good(ctx context.Context, a *attempt) error {
	return a.finish(ctx, &catalog.FinishJob{Kind: count, Subject: a.job.Subject, Fence: a.job.Fence})
}

// A new kind needs only a row in the catalog and one here.
func TestJobKind_needsOnlyARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, good)
		b.ask("x")
		if j := b.job("x"); j.State != catalog.JobDone || b.results() != "ok" {
			t.Errorf("the job is %+v, its attempts ended: %s", j, b.results())
		}
	})
}

// The limits of each kind come from its row.
func TestJobKind_limitsComeFromItsRow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                string
		perNode, perCluster func(config.Settings) int
		want                int // of ten jobs on two nodes
	}{
		{"none", nil, nil, 10},
		{"on a node", always(2), nil, 4},
		{"in the cluster", nil, always(3), 3},
		{"the lesser of both", always(1), always(3), 2},
	} {
		w := &world{World: clustertest.New(t, oneConnection, 2, countRow()), t: t}
		w.kinds = kinds{{Job: count, PerNode: c.perNode, PerCluster: c.perCluster, Timeout: always(time.Minute)}}
		for _, id := range []string{"n1", "n2"} {
			w.nodes = append(w.nodes, hold.Node{ID: id, Epoch: clustertest.Epoch, Weight: 1, Alive: true})
		}
		for _, subject := range strings.Split("abcdefghij", "") {
			w.Do(&catalog.EnqueueJob{Kind: count, Subject: subject})
		}
		w.plan()
		running := 0
		for range w.View().JobsOfKind(count, catalog.JobRunning) {
			running++
		}
		if running != c.want {
			t.Errorf("%s: %d jobs run, want %d", c.what, running, c.want)
		}
	}
}

func TestJobRunner_retriesWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		b := work(t, func(ctx context.Context, a *attempt) error {
			if tries++; tries < 4 {
				return errors.New("no luck")
			}
			return good(ctx, a)
		})
		b.ask("x")
		var waits []time.Duration
		for b.job("x").State == catalog.JobBackoff {
			wait := b.job("x").NotBefore.Sub(b.Now())
			waits = append(waits, wait)
			if b.job("x").Error != "no luck" {
				t.Fatalf("the job says %q", b.job("x").Error)
			}
			b.later(wait - time.Millisecond)
			if b.job("x").State != catalog.JobBackoff {
				t.Fatalf("it was tried before its time: %+v", b.job("x"))
			}
			b.later(time.Millisecond)
		}
		if len(waits) != 3 || waits[1] < waits[0] || waits[2] < waits[1] || waits[0] < 48*time.Second || waits[2] > 5*time.Minute {
			t.Errorf("it waited %v", waits)
		}
		if b.results() != "no luck, no luck, no luck, ok" || b.job("x").Attempt != 0 {
			t.Errorf("the attempts ended: %s; the job is %+v", b.results(), b.job("x"))
		}
	})
}

func TestJobBackoff_growsToAnHourWithVariation(t *testing.T) {
	t.Parallel()
	const first = 30 * time.Second
	for attempt, usual := range map[uint32]time.Duration{0: first, 1: 2 * first, 3: 8 * first, 7: time.Hour, 12: time.Hour, 1000: time.Hour} {
		seen := map[time.Duration]bool{}
		for fence := range uint64(200) {
			d := backoff(&catalog.Job{Attempt: attempt, Fence: fence}, first)
			if d < usual*8/10 || d > usual*12/10 {
				t.Errorf("attempt %d under fence %d waits %s, usual is %s", attempt, fence, d, usual)
			}
			seen[d.Round(time.Second/4)] = true
		}
		if len(seen) < 20 {
			t.Errorf("attempt %d: all failures come back at %d times", attempt, len(seen))
		}
	}
}

func TestJobRunner_doesNotRetryAPermanentFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, func(context.Context, *attempt) error { return errors.Join(errors.New("broken"), errPermanent) })
		b.ask("x")
		if j := b.job("x"); j.State != catalog.JobFailed || !strings.Contains(j.Error, "broken") {
			t.Errorf("the job is %+v", j)
		}
	})
}

func TestJobRunner_panicFailsOnlyTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, func(context.Context, *attempt) error { panic("nil map") })
		b.ask("x")
		if j := b.job("x"); j.State != catalog.JobBackoff || !strings.Contains(j.Error, "BUG: the job panicked: nil map") {
			t.Errorf("the job is %+v", j)
		}
	})
}

// A newer leader grants a job of a kind that this version does not know.
func TestJobRunner_failsAJobOfAnUnknownKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, good)
		ann := catalog.ReaderKey("gitea:h", "7")
		b.Do(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: ann})
		if got := b.plan(); got != "" {
			t.Errorf("it plans what it does not know: %s", got)
		}
		b.Grant(catalog.JobAccountSync, ann, "n1")
		synctest.Wait()
		if j := b.View().Job(catalog.JobAccountSync, ann); j.State != catalog.JobFailed || !strings.Contains(j.Error, "not known to this version") {
			t.Errorf("the job is %+v", j)
		}
	})
}

// until runs until its context ends.
func until(ctx context.Context, _ *attempt) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestJobAttempt_endsAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, until)
		b.ask("x")
		b.later(time.Minute)
		if j := b.job("x"); j.State != catalog.JobBackoff || j.Error != "it took longer than 1m0s" {
			t.Errorf("the job is %+v", j)
		}
	})
}

// A limit below a second is exact: repoIndexTimeoutMs may be 1.
func TestJobAttempt_deadlineMayBeBelowASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, until)
		b.kinds[0].Timeout = always(20 * time.Millisecond)
		b.ask("x")
		b.later(20 * time.Millisecond)
		if j := b.job("x"); j.State != catalog.JobBackoff || j.Error != "it took longer than 20ms" {
			t.Errorf("the job is %+v", j)
		}
	})
}

// A job that failed on a node with a wrong clock waits as long as any other: its back-off uses the
// cluster's clock.
func TestJobBackoff_usesTheClustersClock(t *testing.T) {
	t.Parallel()
	granted := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, off := range []time.Duration{-2 * time.Hour, 0, 2 * time.Hour} {
		here := granted.Add(off)
		r := &Runner{opt: RunnerOptions{Now: func() time.Time { return here.Add(10 * time.Second) }, Backoff: time.Minute}}
		a := &attempt{job: &catalog.Job{GrantedAt: granted}}
		a.progress.start(here)

		ended := granted.Add(10 * time.Second)
		if got, want := r.retryAt(a, errors.New("it failed")), ended.Add(backoff(a.job, time.Minute)); !got.Equal(want) {
			t.Errorf("a clock that is off by %v: again at %v, want %v", off, got, want)
		}
		told := vanished{errors.New("not found"), here.Add(10*time.Second + vanishedWait)}
		if got, want := r.retryAt(a, told), ended.Add(vanishedWait); !got.Equal(want) {
			t.Errorf("a clock that is off by %v: again at %v where the host told when, want %v", off, got, want)
		}
	}
}

// The leader revoked the job and granted it to another node. The first attempt can no longer change
// anything.
func TestJobAttempt_changesNothingAfterItsRevocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late error
		b := work(t, func(ctx context.Context, a *attempt) error {
			<-ctx.Done()
			late = a.finish(context.WithoutCancel(ctx), &catalog.FinishJob{Kind: count, Subject: "x", Fence: a.job.Fence})
			return late
		})
		b.ask("x")
		fence := b.job("x").Fence
		b.Do(&catalog.RevokeJob{Kind: count, Subject: "x", Fence: fence, Reason: "lost"}, &catalog.GrantJob{Kind: count, Subject: "x", Node: "n2", Epoch: clustertest.Epoch})
		synctest.Wait()
		if j := b.job("x"); j.Node != "n2" || j.State != catalog.JobRunning || j.Fence == fence {
			t.Errorf("the job is %+v", j)
		}
		if !refused(late) || b.results() != errLost.Error() {
			t.Errorf("the late report was answered %v; the attempt ended: %s", late, b.results())
		}
	})
}

// If the connection changes, its listing is stopped and begins again at once.
func TestJobAttempt_restartsWhenItsInputChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		input, begun := "one", []string{}
		b := work(t, func(ctx context.Context, a *attempt) error {
			begun = append(begun, a.input)
			if a.input == "two" {
				return good(ctx, a)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		b.kinds[0].Input = func(*catalog.View, *catalog.Job) string { return input }
		b.ask("x")
		b.Do(&catalog.EnqueueJob{Kind: count, Subject: "y", NotBefore: b.Now().Add(time.Hour)}) // any change
		synctest.Wait()
		if b.results() != "" {
			t.Fatalf("stopped without a change of its input: %s", b.results())
		}

		input = "two"
		b.Do(&catalog.EnqueueJob{Kind: count, Subject: "x", Urgent: true})
		synctest.Wait()
		b.plan()
		synctest.Wait()
		if j := b.job("x"); j.State != catalog.JobDone || b.results() != errChanged.Error()+", ok" || strings.Join(begun, " ") != "one two" {
			t.Errorf("the job is %+v; attempts began with %q", j, begun)
		}
	})
}

// The same node gets the job again before its first attempt has ended.
func TestJobRunner_runsOneAttemptOfAJobAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		b := work(t, func(ctx context.Context, a *attempt) error {
			running++
			most = max(most, running)
			<-ctx.Done()
			time.Sleep(time.Second) // it ends slowly
			running--
			return ctx.Err()
		})
		b.ask("x")
		for range 3 {
			b.Do(&catalog.RevokeJob{Kind: count, Subject: "x", Fence: b.job("x").Fence, Reason: "lost"})
			b.Grant(count, "x", "n1")
			synctest.Wait()
		}
		b.later(5 * time.Second)
		if most != 1 || running != 1 {
			t.Errorf("%d attempts ran at once, %d run now", most, running)
		}
	})
}

func TestJobRunner_releasesJobsOnStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{World: clustertest.New(t, oneConnection, 1, countRow()), t: t, kinds: kinds{countKind(until)}}
		w.Do(&catalog.EnqueueJob{Kind: count, Subject: "x"})
		w.Grant(count, "x", "n1")
		r := newRunner(w.Node("n1"), hold.NewFiles(nil, nil, w.Now), w.kinds, RunnerOptions{Log: slog.New(slog.DiscardHandler), Now: w.Now})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		if running := r.Running(); len(running) != 1 || running[0].Subject != "x" {
			t.Errorf("running are %+v", running)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if j := w.View().Job(count, "x"); j.State != catalog.JobWaiting || j.Attempt != 0 {
			t.Errorf("the job is %+v", j)
		}
	})
}

// Without a leader a report waits. It is neither lost nor duplicated.
func TestJobAttempt_reportWaitsForALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, func(ctx context.Context, a *attempt) error {
			time.Sleep(time.Second)
			return good(ctx, a)
		})
		b.ask("x")
		b.Lead("")
		b.later(30 * time.Second)
		if j := b.job("x"); j.State != catalog.JobRunning {
			t.Errorf("without a leader the job is %+v", j)
		}
		b.Lead("n2")
		b.later(time.Second)
		if j := b.job("x"); j.State != catalog.JobDone || b.results() != "ok" {
			t.Errorf("the job is %+v, its attempts ended: %s", j, b.results())
		}
	})
}

// A report is on its way, and the job looks lost. Only the catalog decides.
func TestJobAttempt_reportUnderWayIsNotCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := work(t, func(ctx context.Context, a *attempt) error {
			if err := good(ctx, a); err != nil {
				return err
			}
			time.Sleep(time.Second) // the catalog has the report, and the runner finds the job gone
			return ctx.Err()
		})
		b.ask("x")
		b.later(2 * time.Second)
		if b.results() != "ok" {
			t.Errorf("the attempt ended: %s", b.results())
		}
	})
}

func TestShortMessage_isCutAtACharacter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"one\n  two\tthree":          "one two three",
		"bad \xff byte":              "bad ? byte",
		strings.Repeat("x", 600):     strings.Repeat("x", 497) + "...",
		strings.Repeat("é", 300):     strings.Repeat("é", 248) + "...",
		"":                           "",
		strings.Repeat("word ", 100): strings.TrimSpace(strings.Repeat("word ", 100)),
	} {
		if got := clipError(in); got != want {
			t.Errorf("%.20q is cut to %q, want %q", in, got, want)
		}
	}
}

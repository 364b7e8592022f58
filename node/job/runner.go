package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
)

// Runner runs the jobs that are granted to this node.
type Runner struct {
	cluster Cluster
	files   *hold.Files
	kinds   kinds
	opt     RunnerOptions

	mu      sync.Mutex // guards the field below
	running map[catalog.JobKey]*attempt
}

// RunnerOptions is what a Runner takes beside its parts.
type RunnerOptions struct {
	// Backoff is the wait after the first failure, doubled by each further
	// one up to an hour; 0 means 30 s.
	Backoff time.Duration
	// Observe is called with each ended attempt; nil for none.
	Observe func(kind catalog.JobKind, took time.Duration, err error)
	Log     *slog.Logger
	Now     func() time.Time
}

func newRunner(cluster Cluster, files *hold.Files, ks kinds, opt RunnerOptions) *Runner {
	if opt.Backoff == 0 {
		opt.Backoff = 30 * time.Second
	}
	if opt.Observe == nil {
		opt.Observe = func(catalog.JobKind, time.Duration, error) {}
	}
	return &Runner{cluster: cluster, files: files, kinds: ks, opt: opt, running: map[catalog.JobKey]*attempt{}}
}

// Run starts and stops attempts as the catalog says, until the context ends;
// then it gives its jobs back.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		// Before the view is looked at: a change in between is seen in the next round.
		changed := r.cluster.Changed()
		r.adjust(ctx, &wg)
		select {
		case <-ctx.Done():
			r.stopAll()
			return nil
		case <-changed:
		}
	}
}

// Busy reports whether an attempt works on the mirror of a repository now.
func (r *Runner) Busy(id catalog.RepoID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[catalog.JobKey{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)}] != nil
}

// adjust makes the attempts of this node those of the view.
func (r *Runner) adjust(ctx context.Context, wg *sync.WaitGroup) {
	mine := r.mine()
	r.mu.Lock()
	defer r.mu.Unlock()

	for key, a := range r.running {
		// A job that is not running any more may have been finished by this
		// attempt, which has not heard of it yet.
		switch j := mine[key]; {
		case a.ending.Load():
		case j == nil || j.Fence != a.job.Fence:
			a.cancel(errLost)
		case r.input(j) != a.input:
			a.cancel(errChanged)
		}
	}

	for key, j := range mine {
		if r.running[key] == nil { // else it is the same, or one on its way out: its end calls again
			r.start(ctx, wg, key, j)
		}
	}
}

// input is what an attempt of a job works by now.
func (r *Runner) input(j *catalog.Job) string {
	kind := r.kinds.of(j.Kind)
	if kind == nil || kind.Input == nil {
		return ""
	}
	return kind.Input(r.cluster.View(), j)
}

// mine is the jobs that run on this start of this node, by the catalog.
func (r *Runner) mine() map[catalog.JobKey]*catalog.Job {
	mine := map[catalog.JobKey]*catalog.Job{}
	for j := range r.cluster.View().JobsOf(catalog.JobRunning) {
		if j.Node == r.cluster.Self() && j.Epoch == r.cluster.Epoch() {
			mine[j.Key()] = j
		}
	}
	return mine
}

// start begins an attempt. The mutex is held.
func (r *Runner) start(ctx context.Context, wg *sync.WaitGroup, key catalog.JobKey, j *catalog.Job) {
	// Deadlines are by the clock of the leader; what counts here is how long
	// the job may take.
	limit := max(j.Deadline.Sub(j.GrantedAt), time.Millisecond)
	runCtx, cancelTime := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	runCtx, cancel := context.WithCancelCause(runCtx)

	// The attempt is this one run: its fence makes what it reports count, or not.
	a := &attempt{job: j, input: r.input(j), cluster: r.cluster, files: r.files, cancel: cancel}

	a.progress.start(r.opt.Now())
	r.running[key] = a

	wg.Go(func() {
		defer cancelTime()
		err := r.run(runCtx, a)

		// What ended the attempt says more than what failed because of it.
		if err != nil && context.Cause(runCtx) != nil {
			err = context.Cause(runCtx)
		}

		cancel(nil)

		// Its report first: until it is in the catalog, only the attempt keeps its files.
		r.end(ctx, a, err)
		a.release()

		r.mu.Lock()
		delete(r.running, key)
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.adjust(ctx, wg) // it may have been granted again meanwhile
		}
	})
}

// run does the work of an attempt. What it returns nil for is in the catalog.
func (r *Runner) run(ctx context.Context, a *attempt) (err error) {
	// A panic ends this attempt, and no other job of the node.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: the job panicked: %v", p)
			r.opt.Log.Error("job panicked", "kind", a.job.Kind.String(), "subject", a.job.Subject, "panic", p, "stack", string(debug.Stack()))
		}
	}()

	kind := r.kinds.of(a.job.Kind)
	if kind == nil {
		return fmt.Errorf("%s of jobs is not known to this version: %w", a.job.Kind, errPermanent)
	}
	return kind.Run(ctx, a)
}

// end reports a failed attempt; good ones have reported themselves.
func (r *Runner) end(ctx context.Context, a *attempt, err error) {
	j, took := a.job, r.opt.Now().Sub(a.progress.snapshot().Started)

	if a.ended() {
		err = nil // its own report was seen as a loss before it came back
	}

	r.opt.Observe(j.Kind, took, err)

	log := r.opt.Log.With("kind", j.Kind.String(), "subject", a.subject(), "attempt", j.Attempt, "took", took.Round(time.Millisecond))
	switch {
	case err == nil:
	case errors.Is(err, errLost) || refused(err):
		log.Warn("job was taken away", "err", err)

	// The node stops, or the job is to begin anew: no failure of the job. Any node may have it now.
	case ctx.Err() != nil || errors.Is(err, errChanged):
		r.giveBack(ctx, j)
	default:
		log.Error("job failed", "err", err)
		if err := r.fail(ctx, a, err); err != nil && !refused(err) {
			log.Error("failure could not be reported", "err", err)
		}
	}
}

// giveBack releases a job that waits again at once. It does not wait for a leader.
func (r *Runner) giveBack(ctx context.Context, j *catalog.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _, _ = r.cluster.ProposeAll(ctx, &catalog.ReleaseJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence}) // else it is revoked later
}

// fail reports a failure, and when the job may be tried again.
func (r *Runner) fail(ctx context.Context, a *attempt, failure error) error {
	j := a.job
	return a.finish(ctx, &catalog.FinishJob{
		Kind:      j.Kind,
		Subject:   j.Subject,
		Fence:     j.Fence,
		Error:     short(failure.Error()),
		Permanent: errors.Is(failure, errPermanent),
		NotBefore: r.again(a, failure),

		TokenRefused: host.RefusesToken(failure),
	})
}

// again is when a failed job is tried again: after its back-off, and not
// before a host that set a limit allows it.
func (r *Runner) again(a *attempt, failure error) time.Time {
	now := r.opt.Now()
	rest := backoff(a.job, r.opt.Backoff)
	var told interface{ NotBefore() time.Time }
	if errors.As(failure, &told) {
		rest = max(rest, told.NotBefore().Sub(now))
	}

	// By the clock of what is agreed on, as the leader plans: that of this node may be hours off.
	took := max(0, now.Sub(a.progress.snapshot().Started))
	return a.job.GrantedAt.Add(took + rest)
}

// maxBackoff is the longest wait between two attempts, but for the spread.
const maxBackoff = time.Hour

// backoff is how long a job waits after a failed attempt: twice as long after
// each, up to an hour, spread by a fifth so that many failures of one cause do
// not come back together.
//
//	min(first * 2^attempt, 1 h) * (0.8 .. 1.2)
func backoff(j *catalog.Job, first time.Duration) time.Duration {
	d := first << min(j.Attempt, 12)
	d = min(max(d, first), maxBackoff)
	spread := float64(j.Fence*0x9e3779b97f4a7c15>>40) / (1 << 24) // 0..1
	return time.Duration(float64(d) * (0.8 + 0.4*spread))
}

func (r *Runner) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.running {
		a.cancel(errStopping)
	}
}

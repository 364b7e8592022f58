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

// RunnerOptions configures a Runner.
type RunnerOptions struct {
	// Backoff is the pause after the first failure. It doubles with each further failure, up to an
	// hour; 0 means 30 s.
	Backoff time.Duration
	// Observe is called with each ended attempt; may be nil.
	Observe func(kind catalog.JobKind, took time.Duration, err error)
	Log     *slog.Logger
	Now     func() time.Time
}

// newRunner returns a runner with defaults for the options that are not set.
func newRunner(cluster Cluster, files *hold.Files, ks kinds, opt RunnerOptions) *Runner {
	if opt.Backoff == 0 {
		opt.Backoff = 30 * time.Second
	}
	if opt.Observe == nil {
		opt.Observe = func(catalog.JobKind, time.Duration, error) {}
	}
	return &Runner{cluster: cluster, files: files, kinds: ks, opt: opt, running: map[catalog.JobKey]*attempt{}}
}

// Run starts and stops attempts according to the catalog, until the context ends. Then it releases
// its jobs.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		// Call Changed before View: a change in between is then seen in the next round.
		changed := r.cluster.Changed()
		r.matchGrantedJobs(ctx, &wg)
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

// matchGrantedJobs starts and stops attempts, so that they match the jobs that the view grants to this node.
func (r *Runner) matchGrantedJobs(ctx context.Context, wg *sync.WaitGroup) {
	mine := r.ownJobs()
	r.mu.Lock()
	defer r.mu.Unlock()

	for key, a := range r.running {
		// While an attempt is ending, its own command may have ended the job: do not cancel it.
		switch j := mine[key]; {
		case a.ending.Load():
		case j == nil || j.Fence != a.job.Fence:
			a.cancel(errLost)
		case r.currentInput(j) != a.input:
			a.cancel(errChanged)
		}
	}

	for key, j := range mine {
		if r.running[key] == nil { // an old attempt calls matchGrantedJobs when it ends
			r.startAttempt(ctx, wg, key, j)
		}
	}
}

// currentInput returns the present input of a job.
func (r *Runner) currentInput(j *catalog.Job) string {
	kind := r.kinds.kindOf(j.Kind)
	if kind == nil || kind.Input == nil {
		return ""
	}
	return kind.Input(r.cluster.View(), j)
}

// ownJobs returns the jobs that the catalog has granted to this node since its start.
func (r *Runner) ownJobs() map[catalog.JobKey]*catalog.Job {
	mine := map[catalog.JobKey]*catalog.Job{}
	for j := range r.cluster.View().JobsOf(catalog.JobRunning) {
		if j.Node == r.cluster.Self() && j.Epoch == r.cluster.Epoch() {
			mine[j.Key()] = j
		}
	}
	return mine
}

// startAttempt starts an attempt. The caller holds the mutex.
func (r *Runner) startAttempt(ctx context.Context, wg *sync.WaitGroup, key catalog.JobKey, j *catalog.Job) {
	// Use the duration only: the leader's clock may differ.
	limit := max(j.Deadline.Sub(j.GrantedAt), time.Millisecond)
	runCtx, cancelTime := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	runCtx, cancel := context.WithCancelCause(runCtx)

	a := &attempt{job: j, input: r.currentInput(j), cluster: r.cluster, files: r.files, cancel: cancel}

	a.progress.start(r.opt.Now())
	r.running[key] = a

	wg.Go(func() {
		defer cancelTime()
		err := r.runAttempt(runCtx, a)

		// Report why the attempt was cancelled rather than what failed because of it.
		if err != nil && context.Cause(runCtx) != nil {
			err = context.Cause(runCtx)
		}

		cancel(nil)

		// Report before releasing the files: until then only the attempt protects them.
		r.reportEnd(ctx, a, err)
		a.release()

		r.mu.Lock()
		delete(r.running, key)
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.matchGrantedJobs(ctx, wg) // the job may have been granted again meanwhile
		}
	})
}

// runAttempt runs the job of an attempt. A nil error means that the result is in the catalog.
func (r *Runner) runAttempt(ctx context.Context, a *attempt) (err error) {
	// A panic ends only this attempt.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: the job panicked: %v", p)
			r.opt.Log.Error("job panicked", "kind", a.job.Kind.String(), "subject", a.job.Subject, "panic", p, "stack", string(debug.Stack()))
		}
	}()

	kind := r.kinds.kindOf(a.job.Kind)
	if kind == nil {
		return fmt.Errorf("%s of jobs is not known to this version: %w", a.job.Kind, errPermanent)
	}
	return kind.Run(ctx, a)
}

// reportEnd logs the end of an attempt, and reports a failure to the catalog. A successful attempt
// has proposed its result itself.
func (r *Runner) reportEnd(ctx context.Context, a *attempt, err error) {
	j, took := a.job, r.opt.Now().Sub(a.progress.snapshot().Started)

	if a.succeeded() {
		err = nil // it was cancelled after its command was committed
	}

	r.opt.Observe(j.Kind, took, err)

	log := r.opt.Log.With("kind", j.Kind.String(), "subject", a.subjectName(), "attempt", j.Attempt, "took", took.Round(time.Millisecond))
	switch {
	case err == nil:
	case errors.Is(err, errLost) || refused(err):
		log.Warn("job was taken away", "err", err)

	// The node stops, or the input changed: release the job, for any node.
	case ctx.Err() != nil || errors.Is(err, errChanged):
		r.releaseJob(ctx, j)
	default:
		log.Error("job failed", "err", err)
		if err := r.reportFailure(ctx, a, err); err != nil && !refused(err) {
			log.Error("failure could not be reported", "err", err)
		}
	}
}

// releaseJob releases a job, so that it waits again at once. It does not wait for a leader.
func (r *Runner) releaseJob(ctx context.Context, j *catalog.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _, _ = r.cluster.ProposeAll(ctx, &catalog.ReleaseJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence}) // on failure the leader revokes it later
}

// reportFailure reports a failure, and when the job may be retried.
func (r *Runner) reportFailure(ctx context.Context, a *attempt, failure error) error {
	j := a.job
	return a.finish(ctx, &catalog.FinishJob{
		Kind:      j.Kind,
		Subject:   j.Subject,
		Fence:     j.Fence,
		Error:     clipError(failure.Error()),
		Permanent: errors.Is(failure, errPermanent),
		NotBefore: r.retryAt(a, failure),

		TokenRefused: host.RefusesToken(failure),
	})
}

// retryAt returns when a failed job is retried: after its back-off, and not before the host's rate
// limit ends.
func (r *Runner) retryAt(a *attempt, failure error) time.Time {
	now := r.opt.Now()
	wait := backoff(a.job, r.opt.Backoff)
	var limited interface{ NotBefore() time.Time }
	if errors.As(failure, &limited) {
		wait = max(wait, limited.NotBefore().Sub(now))
	}

	// Use the cluster's clock, like the leader: this node's clock may be wrong.
	took := max(0, now.Sub(a.progress.snapshot().Started))
	return a.job.GrantedAt.Add(took + wait)
}

// maxBackoff is the longest back-off, before the random variation.
const maxBackoff = time.Hour

// backoff returns how long a job waits after a failed attempt. The time doubles, up to an hour. It
// varies by a fifth, so that many failures with one cause are not retried together.
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

package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard"
)

// Options is what the parts of this package work with.
type Options struct {
	Cluster *cluster.Cluster
	Set     *shard.Set
	Mirrors *Mirrors
	Log     *slog.Logger
	Now     func() time.Time
	// Secret gives the value of a token reference.
	Secret func(ctx context.Context, t config.Token) (string, error)
	// Always is the globs of files without limits of size (ALWAYS_INDEX_FILE_PATTERNS).
	Always func() []string
	// Tagger finds symbols; nil indexes without them. TaggerName is its kind
	// and version, a part of what an index is made from.
	Tagger     shard.Tagger
	TaggerName string
	// Backoff is the wait after the first failure, doubled by each further
	// one up to an hour; 0 means 30 s.
	Backoff time.Duration
	// Observe is told of each ended attempt; nil for nobody.
	Observe func(kind catalog.JobKind, took time.Duration, err error)
	// Replicas is the number of copies wanted of everything.
	Replicas int
	// DiskUsed is how full the volume is, in percent; nil for unknown.
	DiskUsed func() int
	// Timing multiplies how long a silent node keeps its jobs and its data; 0 means 1.
	Timing float64
	// SliceBytes is the text of one shard at most; 0 means 512 MiB.
	SliceBytes int64
	// Searched asks a node how long it has searched each unit so far; nil: no
	// unit gets an extra copy. HeatWindow is how long searches are counted; 0
	// means a minute.
	Searched   func(ctx context.Context, node string) (map[uint64]time.Duration, error)
	HeatWindow time.Duration
	// Workers is how many cores a build may use; 0 means all.
	Workers int
}

// errPermanent marks failures that no further attempt can mend.
var errPermanent = errors.New("no use to try again")

// errLost ends an attempt whose fence is no longer the job's.
var errLost = errors.New("the job was taken away")

// errStopping ends an attempt because the node stops.
var errStopping = errors.New("the node stops")

// Runner runs the jobs that are granted to this node.
type Runner struct {
	opt       Options
	transfers *Transfers    // nil: nothing is copied between nodes
	builds    chan struct{} // a slot for each build that may use the processors
	thrift    thrift

	mu      sync.Mutex // guards the fields below
	running map[catalog.JobKey]*attempt
	guarded map[string]int     // files that are being put into the catalog
	awaited map[string]awaited // files whose generation another node is about to publish
}

// attempt is one run of a job.
type attempt struct {
	job    *catalog.Job
	cancel context.CancelCauseFunc
	done   chan struct{}
	ending atomic.Bool // its last command is on its way: the catalog alone judges it
	guards []func()    // let go of the files that it has adopted
	progress
}

// NewRunner returns a Runner; Run makes it work.
func NewRunner(opt Options) *Runner {
	if opt.Backoff == 0 {
		opt.Backoff = 30 * time.Second
	}
	return &Runner{
		opt: opt, builds: make(chan struct{}, maxBuilds),
		running: map[catalog.JobKey]*attempt{}, guarded: map[string]int{}, awaited: map[string]awaited{},
	}
}

// maxBuilds is how many builds may use the processors of a node at once:
// each uses all of them, and its memory.
const maxBuilds = 2

// Run starts and stops attempts as the catalog says, until the context ends;
// then it gives its jobs back.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		changed := r.opt.Cluster.Changed()
		r.adjust(ctx, &wg)
		select {
		case <-ctx.Done():
			r.stopAll()
			return nil
		case <-changed:
		}
	}
}

// adjust makes the attempts of this node those of the view.
func (r *Runner) adjust(ctx context.Context, wg *sync.WaitGroup) {
	view, self, epoch := r.opt.Cluster.View(), r.opt.Cluster.Self(), r.opt.Cluster.Epoch()
	mine := map[catalog.JobKey]*catalog.Job{}
	for j := range view.JobsOf(catalog.JobRunning) {
		if j.Node == self && j.Epoch == epoch {
			mine[j.Key()] = j
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, a := range r.running {
		// A job that is not running any more may have been finished by this
		// attempt, which has not heard of it yet.
		if j := mine[key]; (j == nil || j.Fence != a.job.Fence) && !a.ending.Load() {
			a.cancel(errLost)
		}
	}
	for key, j := range mine {
		if old := r.running[key]; old != nil {
			continue // the same one, or one that is on its way out: its end calls again
		}
		r.start(ctx, wg, key, j)
	}
}

// start begins an attempt. The mutex is held.
func (r *Runner) start(ctx context.Context, wg *sync.WaitGroup, key catalog.JobKey, j *catalog.Job) {
	// Deadlines are by the clock of the leader; what counts here is how long
	// the job may take.
	limit := max(j.Deadline.Sub(j.GrantedAt), time.Second)
	runCtx, cancelTime := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	runCtx, cancel := context.WithCancelCause(runCtx)
	a := &attempt{job: j, cancel: cancel, done: make(chan struct{})}
	a.progress.start(r.opt.Now())
	r.running[key] = a
	wg.Go(func() {
		defer cancelTime()
		err := r.run(runCtx, a)
		if err != nil && context.Cause(runCtx) != nil {
			err = context.Cause(runCtx)
		}
		cancel(nil)
		r.end(ctx, a, err)
		for _, release := range a.guards {
			release()
		}
		r.mu.Lock()
		delete(r.running, key)
		r.mu.Unlock()
		close(a.done)
		if ctx.Err() == nil {
			r.adjust(ctx, wg)
		}
	})
}

// run does the work of an attempt. What it returns nil for is in the catalog.
func (r *Runner) run(ctx context.Context, a *attempt) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: the job panicked: %v", p)
			r.opt.Log.Error("job panicked", "kind", KindName(a.job.Kind), "subject", a.job.Subject, "panic", p, "stack", stack())
		}
	}()
	switch a.job.Kind {
	case catalog.JobSync:
		return r.sync(ctx, a)
	case catalog.JobIndex:
		return r.index(ctx, a)
	case catalog.JobCollect:
		return r.collect(ctx, a)
	case catalog.JobPack:
		return r.pack(ctx, a)
	}
	return fmt.Errorf("kind %d of jobs is not known to this version: %w", a.job.Kind, errPermanent)
}

// end reports a failed attempt; good ones have reported themselves.
func (r *Runner) end(ctx context.Context, a *attempt, err error) {
	j, took := a.job, r.opt.Now().Sub(a.progress.snapshot().Started)
	if r.ended(j) {
		err = nil // its own report was seen as a loss before it came back
	}
	if r.opt.Observe != nil {
		r.opt.Observe(j.Kind, took, err)
	}
	log := r.opt.Log.With("kind", KindName(j.Kind), "subject", r.subject(j), "attempt", j.Attempt, "took", took.Round(time.Millisecond))
	switch {
	case err == nil:
		return
	case errors.Is(err, errLost) || refused(err):
		log.Warn("job was taken away", "err", err)
		return
	case ctx.Err() != nil:
		// The node stops: give the job back, but do not wait for a leader.
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		r.opt.Cluster.Propose(short, &catalog.ReleaseJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence})
		return
	}
	log.Error("job failed", "err", err)
	fin := &catalog.FinishJob{
		Kind: j.Kind, Subject: j.Subject, Fence: j.Fence, Error: short(err.Error()),
		Permanent: errors.Is(err, errPermanent), NotBefore: r.opt.Now().Add(r.backoff(j)),
	}
	if _, err := r.propose(ctx, j, fin); err != nil && !refused(err) {
		log.Error("failure could not be reported", "err", err)
	}
}

// ended tells whether an attempt's own report has ended its job well.
func (r *Runner) ended(j *catalog.Job) bool {
	now := r.opt.Cluster.View().Job(j.Kind, j.Subject)
	return now != nil && now.Fence == j.Fence && now.State == catalog.JobDone
}

// backoff is 30 s × 2^attempt up to an hour, spread by a fifth so that many
// failures of one cause do not come back together.
func (r *Runner) backoff(j *catalog.Job) time.Duration {
	d := r.opt.Backoff << min(j.Attempt, 12)
	d = min(max(d, r.opt.Backoff), time.Hour)
	spread := float64(j.Fence*0x9e3779b97f4a7c15>>40) / (1 << 24) // 0..1
	return time.Duration(float64(d) * (0.8 + 0.4*spread))
}

// propose sends a command of a job until it is committed: without a leader it
// tries again as long as the job is this attempt's.
func (r *Runner) propose(ctx context.Context, j *catalog.Job, cmd catalog.Command) (uint64, error) {
	r.mu.Lock()
	a := r.running[j.Key()]
	r.mu.Unlock()
	if a != nil {
		a.ending.Store(true)
		defer a.ending.Store(!goesOn(cmd))
	}
	for {
		index, err := commit(ctx, r.opt.Cluster, cmd)
		if err == nil || !errors.Is(err, cluster.ErrNoLeader) {
			return index, err
		}
		now := r.opt.Cluster.View().Job(j.Kind, j.Subject)
		if now == nil || now.Fence != j.Fence || now.State != catalog.JobRunning {
			return 0, errLost
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// agreement is what commit needs of a cluster.
type agreement interface {
	ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error)
	Await(ctx context.Context, index uint64) error
}

// commit proposes a command and waits, as long as the context lasts, until
// this node has applied it. Once it has an index it is agreed upon: that this
// node is behind the others is no failure of it.
func commit(ctx context.Context, a agreement, cmd catalog.Command) (uint64, error) {
	index, results, err := a.ProposeAll(ctx, cmd)
	if err != nil && index > 0 {
		err = a.Await(ctx, index)
	}
	if err == nil && results[0].Err != nil {
		err = fmt.Errorf("%s: %w", catalog.CommandName(cmd), results[0].Err)
	}
	return index, err
}

// goesOn tells that a command does not end its job.
func goesOn(cmd catalog.Command) bool {
	if fin, ok := cmd.(*catalog.FinishIndex); ok {
		return fin.Continue
	}
	_, page := cmd.(*catalog.SyncPage)
	return page
}

// refused tells that the catalog did not take a command, so that trying
// again is of no use.
func refused(err error) bool {
	var r *catalog.Refusal
	return errors.As(err, &r)
}

func (r *Runner) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.running {
		a.cancel(errStopping)
	}
}

// adopt takes files that an attempt has written into the set and keeps them
// for as long as the attempt lasts: nothing names them before its end, which
// may be many minutes away.
func (r *Runner) adopt(a *attempt, names ...string) error {
	a.guards = append(a.guards, r.guard(names))
	if err := r.opt.Set.Add(names...); err != nil {
		return fmt.Errorf("open the new shards: %w", err)
	}
	return nil
}

// guard keeps files from being collected until release is called.
func (r *Runner) guard(names []string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		r.guarded[n]++
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, n := range names {
			if r.guarded[n]--; r.guarded[n] == 0 {
				delete(r.guarded, n)
			}
		}
	}
}

// awaited says for how long a file is kept whose generation is not known yet.
type awaited struct {
	repo  catalog.RepoID
	after uint64 // the generation that is to be replaced
	until time.Time
}

// await keeps the files of a generation that another node is about to publish.
func (r *Runner) await(call prefetchCall, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range call.Names {
		r.awaited[n] = awaited{call.Repo, call.Generation, until}
	}
}

// over tells that nobody publishes any more what was awaited: the repository
// has a later generation, this one or another, or the time is up.
func (a awaited) over(view *catalog.View, now time.Time) bool {
	repo := view.Repo(a.repo)
	return repo == nil || repo.GenerationAt > a.after || now.After(a.until)
}

// guards lists the files that are kept though no view up to this one names
// them.
func (r *Runner) guards(view *catalog.View) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make(map[string]bool, len(r.guarded))
	for n := range r.guarded {
		names[n] = true
	}
	for n, a := range r.awaited {
		if a.over(view, time.Now()) {
			delete(r.awaited, n)
			continue
		}
		names[n] = true
	}
	return names
}

// busy tells whether an attempt works on a repository now.
func (r *Runner) busy(id catalog.RepoID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[catalog.JobKey{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)}] != nil
}

// subject is how people know what a job is about.
func (r *Runner) subject(j *catalog.Job) string {
	if id := catalog.SubjectRepo(j.Subject); id != 0 && j.Kind != catalog.JobSync && j.Kind != catalog.JobAccountSync {
		if repo := r.opt.Cluster.View().Repo(id); repo != nil {
			return repo.Name
		}
	}
	return j.Subject
}

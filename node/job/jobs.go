package job

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard"
)

// Cluster is what jobs take of the agreement of nodes; *cluster.Cluster is one. Its methods
// are safe for concurrent use.
type Cluster interface {
	// View is the catalog as this node has applied it; Changed is closed when
	// there is a newer one.
	View() *catalog.View
	Changed() <-chan struct{}

	Self() string
	Epoch() uint64
	Alive(node string) bool
	Leading() bool
	Members() []cluster.Member
	Time() time.Time // the clock of what is agreed on

	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// ProposeAll returns a result for each command once they are agreed on. An
	// index beside an error is that of commands which are agreed on and not yet
	// applied here; Await waits for that.
	ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error)
	Await(ctx context.Context, index uint64) error
}

// Deps is what jobs work with.
type Deps struct {
	Cluster Cluster
	Files   *hold.Files
	Copies  *hold.Transfers
	Placer  *hold.Placer
	// Tell brings to a node, this one included, what a host told of pushes:
	// the Poller there has to Hear it.
	Tell Tell
	// Searched is how long this node has searched an index file.
	Searched func(shard.FileID) time.Duration
	// OpenOwn opens code hosts in the name of people.
	OpenOwn OpenOwn
	Log     *slog.Logger
	Now     func() time.Time
}

// Options is how jobs are planned and run on this node.
type Options struct {
	Build BuildOptions
	// Hosts is what code hosts are asked with.
	Hosts host.Tools
	// Backoff is the wait after the first failure, doubled by each further
	// one up to an hour; 0 means 30 s.
	Backoff time.Duration
	// Timing multiplies how long a silent node keeps its jobs and its data; 0 means 1.
	Timing float64
	// Observe is called with each ended attempt; nil for none.
	Observe func(kind catalog.JobKind, took time.Duration, err error)
}

// Jobs is the five parts that jobs have on each node. Each runs until its
// context ends.
type Jobs struct {
	Leader   *Leader
	Runner   *Runner
	Poller   *Poller
	Follower *Follower
	Symbols  *Symbols
}

// New makes the parts, with the table of kinds.
func New(d Deps, opt Options) *Jobs {
	settings := func() config.Settings { return d.Cluster.View().File().Settings }
	from := &remotes{view: d.Cluster.View, mirrors: d.Files.Mirrors, hosts: opt.Hosts, log: d.Log}
	build := newBuilder(d.Files, settings, opt.Build)

	// Each kind of job has what it runs with, and nothing else.
	index := &indexer{remotes: from, builder: build, copies: d.Copies, log: d.Log, now: d.Now}
	pack := &packer{builder: build, copies: d.Copies, log: d.Log, now: d.Now}
	sync := &syncer{hosts: opt.Hosts, log: d.Log, now: d.Now}
	collect := &collector{log: d.Log}
	reads := &readers{hosts: opt.Hosts, log: d.Log}
	own := &owns{open: d.OpenOwn, log: d.Log}
	all := kinds{sync.kind(), index.kind(), collect.kind(), pack.kind(), reads.kind(), own.kind()}

	runner := newRunner(d.Cluster, d.Files, all, RunnerOptions{Backoff: opt.Backoff, Observe: opt.Observe, Log: d.Log, Now: d.Now})

	poller := newPoller(d.Cluster, from, d.Copies, build.optionsKey, runner.Busy, d.Now)
	poller.searched = d.Searched
	follower := newFollower(d.Cluster, opt.Hosts, d.Tell, poller.lookedAt, d.Log, d.Now)
	index.hint = follower.Hint // a repository that is where it was no more wants a listing

	return &Jobs{
		Leader:   newLeader(d.Cluster, all, d.Placer, LeaderOptions{Timing: cmp.Or(opt.Timing, 1), Log: d.Log}),
		Runner:   runner,
		Poller:   poller,
		Follower: follower,
		Symbols:  newSymbols(d.Cluster, d.Files, opt.Build.Tagger != nil, cmp.Or(opt.Backoff, symbolsWait), d.Now),
	}
}

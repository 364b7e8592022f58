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

// Cluster is the part of *cluster.Cluster that jobs use. Its methods are safe for concurrent use.
type Cluster interface {
	// View returns the catalog as applied by this node. Changed returns a channel that is closed
	// when there is a newer one.
	View() *catalog.View
	Changed() <-chan struct{}

	Self() string
	Epoch() uint64
	Alive(node string) bool
	Leading() bool
	Members() []cluster.Member
	Time() time.Time // the cluster's clock

	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// ProposeAll returns a result for each command once they are committed. An error with an index
	// means that they are committed, but not yet applied here; Await waits for that.
	ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error)
	Await(ctx context.Context, index uint64) error
}

// Deps are the other parts of the node that jobs use.
type Deps struct {
	Cluster Cluster
	Files   *hold.Files
	Copies  *hold.Transfers
	Placer  *hold.Placer
	// Tell sends a signal about pushes to a node, possibly this one. The Poller there must get it
	// by Hear.
	Tell Tell
	// Searched returns for how long this node has searched an index file.
	Searched func(shard.FileID) time.Duration
	// OpenOwn opens code hosts in people's names.
	OpenOwn OpenOwn
	Log     *slog.Logger
	Now     func() time.Time
}

// Options configures how jobs are planned and run on this node.
type Options struct {
	Build BuildOptions
	// Hosts are the tools for calls to code hosts.
	Hosts host.Tools
	// Backoff is the pause after the first failure. It doubles with each further failure, up to an
	// hour; 0 means 30 s.
	Backoff time.Duration
	// Timing multiplies how long a silent node keeps its jobs and data; 0 means 1.
	Timing float64
	// Observe is called with each ended attempt; may be nil.
	Observe func(kind catalog.JobKind, took time.Duration, err error)
}

// Jobs holds the five parts of jobs on each node. The caller must call Run of each.
type Jobs struct {
	Leader   *Leader
	Runner   *Runner
	Poller   *Poller
	Follower *Follower
	Symbols  *Symbols
}

// New creates the parts that run jobs, and the table of the kinds of jobs.
func New(d Deps, opt Options) *Jobs {
	settings := func() config.Settings { return d.Cluster.View().File().Settings }
	from := &remotes{view: d.Cluster.View, mirrors: d.Files.Mirrors, hosts: opt.Hosts, log: d.Log}
	build := newBuilder(d.Files, settings, opt.Build)

	// Each kind gets only what it needs.
	index := &indexer{remotes: from, builder: build, copies: d.Copies, log: d.Log, now: d.Now}
	pack := &packer{builder: build, copies: d.Copies, log: d.Log, now: d.Now}
	sync := &syncer{hosts: opt.Hosts, log: d.Log, now: d.Now}
	collect := &collector{log: d.Log}
	reads := &readerSyncer{hosts: opt.Hosts, log: d.Log}
	own := &accountSyncer{openHost: d.OpenOwn, log: d.Log}
	all := kinds{sync.kind(), index.kind(), collect.kind(), pack.kind(), reads.kind(), own.kind()}

	runner := newRunner(d.Cluster, d.Files, all, RunnerOptions{Backoff: opt.Backoff, Observe: opt.Observe, Log: d.Log, Now: d.Now})

	poller := newPoller(d.Cluster, from, d.Copies, build.optionsKey, runner.Busy, d.Now)
	poller.searched = d.Searched
	follower := newFollower(d.Cluster, opt.Hosts, d.Tell, poller.lastLook, d.Log, d.Now)
	index.hint = follower.Hint // a repository that git no longer finds needs a listing

	return &Jobs{
		Leader:   newLeader(d.Cluster, all, d.Placer, LeaderOptions{Timing: cmp.Or(opt.Timing, 1), Log: d.Log}),
		Runner:   runner,
		Poller:   poller,
		Follower: follower,
		Symbols:  newSymbols(d.Cluster, d.Files, opt.Build.Tagger != nil, cmp.Or(opt.Backoff, symbolsWait), d.Now),
	}
}

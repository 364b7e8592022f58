package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/shard"
)

// Node is one node. Its methods are safe for concurrent use.
type Node struct {
	opt     Options
	began   time.Time
	cluster *cluster.Cluster
	set     *shard.Set
	mirrors *job.Mirrors
	env     *environment
	config  *configFile
	jobs    *job.Runner
	poller  *job.Poller
	keeper  *job.Keeper
	leader  *job.Leader
	copier  *job.Copier
	scrub   *job.Scrubber
	copies  *job.Transfers
	lanes   *lanes
	readers *readers
	peers   *peers
	keys    *keyring
	sites   *sites
	metrics *metrics
	unlock  func()
	tags    tagger

	searched    job.Meter
	streamBatch int // shards of a part of a stream
	layouts     layouts
	groups      groups

	wired    atomic.Bool // New has made every part
	stopping atomic.Bool
}

// New opens the data directory and wires the parts. On an error nothing is
// left open. The caller must call Run, and Run's end closes everything.
func New(opt Options) (n *Node, err error) {
	// git runs in folders of its own: a relative path would mean another place there.
	if opt.Dir, err = filepath.Abs(opt.Dir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	opt = withDefaults(opt)
	n = &Node{opt: opt, began: opt.Now(), streamBatch: streamBatch, lanes: newLanes(opt.Cores), readers: newReaders(), peers: newPeers()}
	unwind := n // the named result is nil where an error is returned
	defer func() {
		if err != nil {
			unwind.closeFiles()
		}
	}()
	registerQueries()
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if n.unlock, err = lockDir(opt.Dir); err != nil {
		return nil, err
	}
	if n.mirrors, err = job.OpenMirrors(filepath.Join(opt.Dir, "mirrors")); err != nil {
		return nil, err
	}
	n.set, err = shard.OpenSet(filepath.Join(opt.Dir, "shards"), shard.SetOptions{
		Now: opt.Now, Workers: opt.Cores, Damaged: func(name string, err error) { unwind.damaged(name, err) },
	})
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	if n.cluster, err = cluster.New(n.clusterOptions()); err != nil {
		return nil, err
	}
	n.env = newEnvironment(n)
	n.tags = newTagger(n)
	n.keys = newKeyring(n)
	n.sites = newSites(n)
	n.config = newConfigFile(n)
	n.wireJobs()
	n.metrics = newMetrics(n)
	n.handle()
	n.wired.Store(true)
	return n, nil
}

func withDefaults(opt Options) Options {
	opt.Cores = cmp.Or(opt.Cores, runtime.GOMAXPROCS(0))
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.LookupEnv == nil {
		opt.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if opt.Registerer == nil {
		opt.Registerer = prometheus.NewRegistry()
	}
	if opt.Replicas <= 0 {
		opt.Replicas = 2
	}
	if opt.ClusterKeyFile == "" {
		opt.ClusterKeyFile = filepath.Join(opt.Dir, "cluster.key")
	}
	if opt.Version == "" {
		opt.Version = "dev"
	}
	opt.BaseURL = strings.TrimRight(opt.BaseURL, "/")
	return opt
}

func (n *Node) clusterOptions() cluster.Options {
	o := n.opt
	return cluster.Options{
		DataDir: o.Dir, ClusterListen: o.ClusterListen, GossipListen: o.GossipListen, Advertise: o.Advertise,
		API: o.BaseURL, Join: o.Join, BootstrapExpect: o.BootstrapExpect, ClusterKeyFile: o.ClusterKeyFile,
		Zone: o.Zone, Weight: o.Weight, Version: o.Version, Now: o.Now, Log: o.Log, Metrics: o.Registerer,
		Timing: o.Timing, Dial: o.Dial, Reach: o.Reach,
	}
}

func (n *Node) wireJobs() {
	opt := job.Options{
		Cluster: n.cluster, Set: n.set, Mirrors: n.mirrors, Log: n.opt.Log, Now: n.opt.Now,
		Secret: n.env.secret, Always: n.alwaysPatterns, Tagger: n.tags.tag, TaggerName: n.tags.name,
		Backoff: n.opt.Backoff, Timing: n.opt.Timing, SliceBytes: n.opt.SliceBytes, Replicas: n.opt.Replicas, Workers: n.opt.Cores,
		DiskUsed: func() int { return int(n.diskUsed()) },
		Searched: n.askSearched, HeatWindow: n.opt.HeatWindow,
		Observe: func(kind catalog.JobKind, took time.Duration, err error) { n.metrics.job(kind, took, err) },
	}
	n.jobs = job.NewRunner(opt)
	n.poller = job.NewPoller(n.jobs)
	n.keeper = job.NewKeeper(n.jobs)
	n.leader = job.NewLeader(opt)
	n.copies = job.NewTransfers(n.jobs)
	n.copier = job.NewCopier(n.jobs)
	n.scrub = job.NewScrubber(n.jobs)
}

// handle answers the calls of other nodes. It happens before Run.
func (n *Node) handle() {
	n.cluster.Handle(methodLeaf, n.serveLeaf)
	n.cluster.Handle(methodBrowse, n.serveBrowse)
	n.cluster.Handle(methodStatus, n.serveStatus)
	n.cluster.Handle(methodSearched, n.serveSearched)
	n.copies.Handle(n.cluster)
}

// damaged is told by the set of files that were put aside, also while New
// still wires: what the keeper does not hear of then it finds missing.
func (n *Node) damaged(name string, err error) {
	if n.wired.Load() {
		n.metrics.damaged.Inc()
		n.keeper.Damaged(name, err)
		return
	}
	n.opt.Log.Error("a shard file is damaged and was put aside", "file", name, "err", err)
}

// Run serves until ctx ends, then stops in order: jobs are given back before
// the cluster is left, files are closed after everything that reads them.
func (n *Node) Run(ctx context.Context) error {
	defer n.closeFiles()
	// The cluster outlives the rest: jobs that stop still give their leases
	// back through it.
	clusterCtx, stopCluster := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCluster()
	clusterDone := make(chan error, 1)
	workCtx, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	go func() {
		err := n.cluster.Run(clusterCtx)
		clusterDone <- err
		stopWork(errors.Join(errors.New("the cluster part has ended"), err))
	}()
	g, gctx := errgroup.WithContext(workCtx)
	for _, part := range []func(context.Context) error{
		n.leader.Run, n.jobs.Run, n.poller.Run, n.keeper.Run, n.copier.Run, n.scrub.Run, n.config.run, n.keys.run, n.runLoad, n.runTags,
	} {
		g.Go(func() error { return part(gctx) })
	}
	err := g.Wait()
	n.stopping.Store(true)
	stopCluster()
	return errors.Join(err, <-clusterDone)
}

// closeFiles closes what New opened, in reverse.
func (n *Node) closeFiles() {
	if n.tags.close != nil {
		n.tags.close()
	}
	if n.mirrors != nil {
		n.mirrors.Close()
	}
	if n.set != nil {
		n.set.Close()
	}
	if n.unlock != nil {
		n.unlock()
		n.unlock = nil
	}
}

// BaseURL is the prefix of every link, without a trailing slash.
func (n *Node) BaseURL() string { return n.opt.BaseURL }

// ID is the node's own id in the cluster.
func (n *Node) ID() string { return n.cluster.Self() }

// diskUsed is how full the volume of the data directory is, in percent.
func (n *Node) diskUsed() uint8 {
	free, total := diskSpace(n.opt.Dir)
	if total <= 0 {
		return 0
	}
	return uint8(100 * (total - free) / total)
}

// LiveFiles lists the index files that the live generations are made of.
func (n *Node) LiveFiles() []string {
	var files []string
	for repo := range n.cluster.View().Repos() {
		for _, p := range job.Parts(repo) {
			files = append(files, p.Files()...)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// ClusterAddr is the address at which other nodes call this one.
func (n *Node) ClusterAddr() string { return n.cluster.ClusterAddr() }

// GossipAddr is the address that others can join by.
func (n *Node) GossipAddr() string { return n.cluster.GossipAddr() }

// runLoad tells the others how busy this node is.
func (n *Node) runLoad(ctx context.Context) error {
	for {
		running, waiting := n.lanes.running()
		n.cluster.SetLoad(cluster.Load{
			Searches: uint32(running + waiting), DiskUsed: n.diskUsed(), Applied: n.cluster.View().Index(), StartedAt: n.began,
		})
		t := time.NewTimer(2 * time.Second)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

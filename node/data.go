package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/signin"
	"github.com/shoalsearch/shoal/shard"
)

// wireData makes the parts that store data. Their callbacks into the job runner must not run
// before Run.
func (n *Node) wireData() {
	log, now := n.opt.Log, clock.Now // the parts measure durations, so the real clock
	busy := func(id catalog.RepoID) bool { return n.jobs.Runner.Busy(id) }
	full := func() bool { return n.diskUsed() >= hold.DiskStop }

	d := &n.data
	d.files = hold.NewFiles(n.set, n.mirrors, now)
	d.transfers = hold.NewTransfers(n.cluster, n.cluster, d.files, hold.TransferOptions{Replicas: n.opt.Replicas, Full: full, Log: log, Now: now})
	d.copier = hold.NewCopier(n.cluster, d.files, d.transfers, hold.CopyOptions{Replicas: n.opt.Replicas, Busy: busy, Log: log, Now: now})
	d.collector = hold.NewCollector(n.cluster, d.files, busy, log)
	d.scrubber = hold.NewScrubber(d.files, log)
}

// wireJobs makes the parts that plan and run jobs.
func (n *Node) wireJobs(tools host.Tools) {
	n.jobs = job.New(job.Deps{
		Cluster: n.cluster,
		Files:   n.data.files,
		Copies:  n.data.transfers,
		Placer:  hold.NewPlacer(n.cluster, n.opt.Replicas, n.opt.Log, clock.Now),
		Tell:    n.tellPushes,

		Searched: func(file shard.FileID) time.Duration { return n.Search.Searched(file) },
		Log:      n.opt.Log,
		Now:      n.opt.Now,

		// package signin has the tokens of people: a job gets a host that is already open in a
		// person's name.
		OpenOwn: func(ctx context.Context, x *catalog.Identity, kept *catalog.HostToken, fence uint64, anew bool) (host.Own, error) {
			return n.doors.Own(ctx, signin.Asking{Identity: x, Kept: kept, Fence: fence, Anew: anew})
		},
	}, job.Options{
		Build:   n.buildOptions(),
		Hosts:   tools,
		Backoff: n.opt.Backoff,
		Timing:  n.opt.Timing,
		Observe: func(kind catalog.JobKind, took time.Duration, err error) { n.metrics.countAttempt(kind, took, err) },
	})
}

// buildOptions returns the settings with which this node builds indexes.
func (n *Node) buildOptions() job.BuildOptions {
	return job.BuildOptions{
		Always:      n.alwaysPatterns,
		Tagger:      n.tags.tag,
		TaggerName:  n.tags.name,
		SliceBytes:  n.opt.SliceBytes,
		MinCopyText: n.opt.MinCopyText,
		Workers:     n.opt.Cores,
	}
}

package node

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
)

// Run serves until ctx ends, then stops in order: jobs return their leases before the node leaves
// the cluster, and files close last.
func (n *Node) Run(ctx context.Context) error {
	defer n.closers.close(n.opt.Log)

	// The cluster outlives the other parts: stopping jobs return their leases through it.
	clusterCtx, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	left := make(chan error, 1)
	workCtx, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	go func() {
		err := n.cluster.Run(clusterCtx)
		left <- err
		stopWork(errors.Join(errors.New("the cluster part has ended"), err))
	}()

	// If one part ends with an error, all end.
	g, gctx := errgroup.WithContext(workCtx)
	for _, part := range []func(context.Context) error{
		n.jobs.Leader.Run, n.jobs.Runner.Run, n.jobs.Poller.Run, n.jobs.Follower.Run, n.jobs.Symbols.Run,
		n.data.copier.Run, n.data.collector.Run, n.data.scrubber.Run, n.history.Run, n.Watches.Run, n.Watches.Send,
		n.config.Run, n.Keys.Run, n.Sessions.Run, n.agents.Run, n.Ask.Run, n.threads.Run, n.runLoad, n.Chronicle.Run, n.Operate.NoteSyncs, n.proposePermissionSync,
	} {
		g.Go(func() error { return part(gctx) })
	}
	err := g.Wait()
	n.opt.Log.Debug("stopped", "part", "jobs")

	// The cluster part stops last: the parts above returned their leases through it.
	n.stopping.Store(true)
	leave()
	err = errors.Join(err, <-left)
	n.opt.Log.Debug("stopped", "part", "cluster")
	return err
}

// runLoad publishes this node's load to the other nodes, and logs when its volume becomes too full.
func (n *Node) runLoad(ctx context.Context) error {
	volume := volumeLog{log: n.opt.Log, dir: n.opt.Dir}
	for {
		used := n.diskUsed()
		volume.note(n.ID(), int(used))
		running, waiting := n.lanes.searches()
		n.cluster.SetLoad(cluster.Load{
			Searches:  uint32(running + waiting),
			DiskUsed:  used,
			Applied:   n.cluster.View().Index(),
			StartedAt: n.began,
			Replicas:  uint32(n.opt.Replicas),
			Backup:    n.Operate.Archive.Saved(),
		})

		// Load balancing, searches and placement use it; two seconds is fresh enough for all of
		// them.
		if !clock.Wait(ctx, 2*time.Second) {
			return nil
		}
	}
}

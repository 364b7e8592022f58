package operate

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/job"
)

// progressCall asks a node for the attempts running there.
var progressCall = call.To[call.Nothing, []job.Progress]("progress")

// progressTimeout is how long a list waits for other nodes' progress.
const progressTimeout = 300 * time.Millisecond

// Progress returns the progress of running attempts by fence, of this node and the others that run
// some. Nodes that do not answer in time are left out.
func (q *Queue) Progress(ctx context.Context, view *catalog.View) map[uint64]job.Progress {
	// Key by fence, because another node may run the job by now.
	all := map[uint64]job.Progress{}
	for _, p := range q.running() {
		all[p.Fence] = p
	}

	// An incomplete list now is better than a complete one later.
	ctx, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	var nothing call.Nothing
	// Jobs of nodes that do not answer are still listed, without progress.
	for _, list := range progressCall.AskAll(ctx, q.cluster, q.othersAtWork(view), &nothing) {
		for _, p := range *list {
			all[p.Fence] = p
		}
	}
	return all
}

// othersAtWork returns the other reachable nodes that run jobs.
func (q *Queue) othersAtWork(view *catalog.View) (ids []string) {
	known := map[string]bool{q.cluster.Self(): true}
	for j := range view.JobsOf(catalog.JobRunning) {
		if !known[j.Node] && q.cluster.Alive(j.Node) {
			ids = append(ids, j.Node)
		}
		known[j.Node] = true
	}
	return ids
}

// serveProgress returns the attempts on this node.
func (q *Queue) serveProgress(context.Context, *call.Nothing) (*[]job.Progress, error) {
	running := q.running()
	return &running, nil
}

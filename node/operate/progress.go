package operate

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/job"
)

// progressCall asks a node for the attempts of jobs that run there.
var progressCall = call.To[call.Nothing, []job.Progress]("progress")

// progressTime is how long a list waits for the progress of other nodes.
const progressTime = 300 * time.Millisecond

// Progress is how far the running attempts are, by fence, of this node and of
// the others that run any. A node that does not answer at once is left out.
func (q *Queue) Progress(ctx context.Context, view *catalog.View) map[uint64]job.Progress {
	// By fence, since a job may have been given to another node meanwhile.
	all := map[uint64]job.Progress{}
	for _, p := range q.running() {
		all[p.Fence] = p
	}

	// A list is worth more now than whole.
	ctx, cancel := context.WithTimeout(ctx, progressTime)
	defer cancel()
	var nothing call.Nothing
	// Without those that did not answer: their jobs are in the list all the same.
	for _, list := range progressCall.AskAll(ctx, q.cluster, q.othersAtWork(view), &nothing) {
		for _, p := range *list {
			all[p.Fence] = p
		}
	}
	return all
}

// othersAtWork lists the other nodes that run jobs and can be reached.
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

// serveProgress tells another node of the attempts here.
func (q *Queue) serveProgress(context.Context, *call.Nothing) (*[]job.Progress, error) {
	running := q.running()
	return &running, nil
}

package job

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// collect takes a repository that no connection lists any more out of the
// catalog. The files follow: every node's keeper removes what no view names.
func (r *Runner) collect(ctx context.Context, a *attempt) error {
	id := catalog.SubjectRepo(a.job.Subject)
	name := r.subject(a.job)
	_, err := r.propose(ctx, a.job, &catalog.FinishCollect{Repo: id, Fence: a.job.Fence})
	if err != nil {
		return fmt.Errorf("collect %s: %w", name, err)
	}
	r.opt.Log.Info("repository collected", "repo", name)
	return nil
}

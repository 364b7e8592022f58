package job

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// collector removes repositories from the catalog that no connection lists any more. Every node
// then removes the files that no view names.
type collector struct{ log *slog.Logger }

// collectTime is the time limit of a collection.
const collectTime = 10 * time.Minute

// kind returns how the cluster plans and runs the jobs that remove repositories which no connection
// lists any more.
func (c *collector) kind() Kind {
	return Kind{
		Job:     catalog.JobCollect,
		PerNode: func(s config.Settings) int { return s.MaxRepoGarbageCollectionJobs },
		Timeout: always(collectTime),
		Look:    LookRepos, Enqueue: enqueueCollections,
		Blocked: func(p *planner, j *catalog.Job) bool { return p.isRunning(catalog.JobIndex, j.Subject) },
		Run:     c.removeRepo,
	}
}

// enqueueCollections enqueues the collection of orphaned repositories after their grace period.
func enqueueCollections(p *planner) {
	for r := range p.in.View.Repos() {
		// During the grace period a connection may list the repository again and get it unchanged.
		if r.Kept(p.in.Now) || !p.elapsed(r.OrphanedAt, p.settings.RepoGarbageCollectionGrace) {
			continue
		}
		subject := catalog.RepoSubject(r.ID)
		if !p.mayEnqueue(p.in.View.Job(catalog.JobCollect, subject), p.settings.ReindexInterval) {
			continue
		}
		if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobCollect, Subject: subject}) {
			return
		}
	}
}

// removeRepo removes the repository of a job from the catalog.
func (c *collector) removeRepo(ctx context.Context, a *attempt) error {
	name := a.subjectName()
	if err := a.finish(ctx, &catalog.FinishCollect{Repo: catalog.SubjectRepo(a.job.Subject), Fence: a.job.Fence}); err != nil {
		return fmt.Errorf("collect %s: %w", name, err)
	}
	c.log.Info("repository collected", "repo", name)
	return nil
}

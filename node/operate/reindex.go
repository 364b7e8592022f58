package operate

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ReindexResponse names the queued job.
type ReindexResponse struct {
	ID   uint32 `json:"repoId"`
	Name string `json:"repoName"`
	Job  string `json:"jobId"` // id of the index job
}

// Reindex queues an index job for a repository.
func (q *Queue) Reindex(ctx context.Context, by account.Owner, id uint32) (*ReindexResponse, error) {
	seen, err := q.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	// A repository that the owner may not see is not found.
	repo, err := seen.ByID(id)
	if err != nil {
		return nil, err
	}

	if err := enqueueIndex(ctx, q.cluster, []*catalog.Repo{repo}); err != nil {
		return nil, err
	}

	// The job's id follows from the repository.
	job := catalog.JobKey{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(repo.ID)}
	return &ReindexResponse{ID: repo.ID, Name: repo.Name, Job: jobID(job)}, nil
}

// enqueueIndex queues urgent index jobs for repositories.
func enqueueIndex(ctx context.Context, c Cluster, repos []*catalog.Repo) error {
	// Split large sets, because one large log entry would delay all others.
	for part := range slices.Chunk(repos, catalog.MaxPage) {
		var cmds []catalog.Command
		for _, repo := range part {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(repo.ID), Urgent: true})
		}

		if _, err := c.Propose(ctx, cmds...); err != nil {
			return call.WriteError(err)
		}
	}
	return nil
}

package operate

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ReindexResponse says what was queued.
type ReindexResponse struct {
	ID   uint32 `json:"repoId"`
	Name string `json:"repoName"`
	Job  string `json:"jobId"` // the id of its index job
}

// Reindex queues an index job for a repository.
func (q *Queue) Reindex(ctx context.Context, by account.Owner, id uint32) (*ReindexResponse, error) {
	seen, err := q.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	// One that the owner may not see is missing, as everywhere.
	repo, err := seen.ByID(id)
	if err != nil {
		return nil, err
	}

	if err := enqueueIndex(ctx, q.cluster, []*catalog.Repo{repo}); err != nil {
		return nil, err
	}

	// Its id is known before the job is: it goes by the repository.
	job := catalog.JobKey{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(repo.ID)}
	return &ReindexResponse{ID: repo.ID, Name: repo.Name, Job: jobID(job)}, nil
}

// enqueueIndex asks for the index jobs of repositories, before all others.
func enqueueIndex(ctx context.Context, c Cluster, repos []*catalog.Repo) error {
	// So many to an entry: one with all of them would hold up whatever else is agreed on.
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

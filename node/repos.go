package node

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ReindexRequest asks to index a repository now.
type ReindexRequest struct{ ID uint32 }

// ReindexResponse tells what was queued.
type ReindexResponse struct {
	ID   uint32
	Name string
}

// Reindex queues an index job for a repository.
func (n *Node) Reindex(ctx context.Context, by account.Owner, req ReindexRequest) (*ReindexResponse, error) {
	seen, err := n.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}
	repo, err := seen.ByID(req.ID)
	if err != nil {
		return nil, err
	}
	if err := n.enqueueIndex(ctx, []*catalog.Repo{repo}); err != nil {
		return nil, err
	}
	return &ReindexResponse{ID: repo.ID, Name: repo.Name}, nil
}

func (n *Node) enqueueIndex(ctx context.Context, repos []*catalog.Repo) error {
	for part := range slices.Chunk(repos, catalog.MaxPage) {
		var cmds []catalog.Command
		for _, repo := range part {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(repo.ID), Urgent: true})
		}
		if _, err := n.cluster.Propose(ctx, cmds...); err != nil {
			return call.WriteError(err)
		}
	}
	return nil
}

package api

import (
	"context"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
)

// agreement is what the route of raft needs.
type agreement interface {
	Raft(context.Context, account.Owner) (*node.RaftResponse, error)
}

// raftRoutes are the routes of how nodes agree.
type raftRoutes struct{ agreement agreement }

func (a *raftRoutes) rows() []route {
	return []route{
		row("GET", "/api/raft", accessOwner, quickTimeout, owners(a.get)),
	}
}

// get is GET /api/raft.
func (a *raftRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.agreement.Raft(ctx, by)
	if err != nil {
		return err
	}
	return c.json(r)
}

package api

import (
	"context"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
)

// placer is what the route of placement needs.
type placer interface {
	Placement(context.Context, account.Owner, node.PlacementRequest) (*node.PlacementResponse, error)
}

// placementRoutes are the routes of how the data lies on the nodes.
type placementRoutes struct {
	placer placer
	base   func() string
}

func (a *placementRoutes) rows() []route {
	return []route{
		row("GET", "/api/placement", accessOwner, quickTimeout, owners(a.get)),
	}
}

// get is GET /api/placement: of all nodes, and of a page of units.
func (a *placementRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := node.PlacementRequest{Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.placer.Placement(ctx, by, req)
	if err != nil {
		return err
	}
	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Units), r.Total, false})
	return c.json(r)
}

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
	base   string
}

func (a *placementRoutes) rows() []route {
	return []route{
		row("GET", "/api/placement", accessOwner, quickTimeout, owners(a.get)),
	}
}

type placementDetailJSON struct {
	Replicas  int           `json:"replicas"`
	Tolerates toleranceJSON `json:"tolerates"`
	placementJSON
	Nodes []nodePlacementJSON `json:"nodes"`
	Units []unitPlacementJSON `json:"units"`
}

type nodePlacementJSON struct {
	ID       string   `json:"id"`
	Health   string   `json:"health"`
	Units    int      `json:"units"`
	Bytes    int64    `json:"bytes"`
	Coming   int      `json:"coming"`
	Going    int      `json:"going"`
	Draining bool     `json:"draining"`
	Left     int      `json:"left"`
	Drained  bool     `json:"drained"`
	Loses    lossJSON `json:"loses"`
}

// lossJSON is what would be gone with a node.
type lossJSON struct {
	Repos int      `json:"repositories"`
	Names []string `json:"names"`
}

type unitPlacementJSON struct {
	Unit    uint64   `json:"unit"`
	Kind    string   `json:"kind"`
	Repos   int      `json:"repositories"`
	Targets []string `json:"targets"`
	Holders []string `json:"holders"`
	Live    int      `json:"liveCopies"`
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

	out := placementDetailJSON{
		Replicas: r.Replicas, Tolerates: toleranceOf(r.Tolerates), placementJSON: placementOf(&r.Status),
		Nodes: make([]nodePlacementJSON, len(r.Nodes)), Units: make([]unitPlacementJSON, len(r.Units)),
	}
	for i, n := range r.Nodes {
		out.Nodes[i] = nodePlacementJSON{n.ID, n.Health, n.Units, n.Bytes, n.Coming, n.Going, n.Draining, n.Left, n.Drained, lossJSON{n.Loses, list(n.Names)}}
	}

	for i, u := range r.Units {
		kind := "group"
		if u.Slice {
			kind = "slice"
		}
		out.Units[i] = unitPlacementJSON{u.Unit, kind, u.Repos, list(u.Targets), list(u.Holders), u.Live}
	}
	c.page(a.base, paged{req.Page, req.PerPage, len(out.Units), r.Total, false})
	return c.json(out)
}

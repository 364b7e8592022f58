package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
)

// connections is what the routes of connections need.
type connections interface {
	Connections(context.Context, account.Owner) ([]operate.ConnectionStatus, error)
	Connection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionResponse, error)
	SyncConnection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
	AcceptListing(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
}

// connectionRoutes are the routes of connections.
type connectionRoutes struct {
	connections connections
	visible     visibleConnections
}

// visibleConnections lists for everybody the connections of what they may see.
type visibleConnections interface {
	VisibleConnections(context.Context, catalog.Viewer) ([]browse.ConnectionInfo, error)
}

func (a *connectionRoutes) rows() []route {
	return []route{
		row("GET", "/api/connections", accessRead, quickTimeout, a.list),
		row("GET", "/api/connections/{connection}", accessOwner, quickTimeout, owners(a.get)),
		row("POST", "/api/connections/{connection}/sync", accessOwner, adminTimeout, owners(a.sync)),
		row("POST", "/api/connections/{connection}/accept", accessOwner, adminTimeout, owners(a.accept)),
	}
}

// list is GET /api/connections: with their state for owners.
func (a *connectionRoutes) list(ctx context.Context, c *call) error {
	by, err := account.AsOwner(c.viewer)
	if err != nil {
		names, err := a.visible.VisibleConnections(ctx, c.viewer)
		if err != nil {
			return err
		}
		return c.json(names)
	}
	all, err := a.connections.Connections(ctx, by)
	if err != nil {
		return err
	}
	return c.json(all)
}

// get is GET /api/connections/{connection}: with its last listings.
func (a *connectionRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.connections.Connection(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	if err != nil {
		return err
	}

	return c.json(struct {
		operate.ConnectionStatus
		Syncs []operate.Listing `json:"syncs"`
	}{r.ConnectionStatus, r.Listings()})
}

// sync is POST /api/connections/{connection}/sync: a listing now.
// The answer is how the connection stood before.
func (a *connectionRoutes) sync(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.connections.SyncConnection(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	return syncQueued(c, before, err)
}

// accept is POST /api/connections/{connection}/accept: what the last
// listing misses is gone. The answer is how the connection stood before.
func (a *connectionRoutes) accept(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.connections.AcceptListing(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	return syncQueued(c, before, err)
}

func syncQueued(c *call, before *operate.ConnectionStatus, err error) error {
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(before)
}

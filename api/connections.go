package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
)

// connectionRoutes handles connections.
type connectionRoutes struct {
	operate operate.Operator
	browse  browse.Reader
}

func (a *connectionRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/connections", accessRead, quickTimeout, a.list),
		newRoute("GET", "/api/connections/{connection}", accessOwner, quickTimeout, ownerAction(a.operate.Connection)),
		newRoute("POST", "/api/connections/{connection}/sync", accessOwner, adminTimeout, queuedAction(a.operate.SyncConnection)),
		newRoute("POST", "/api/connections/{connection}/accept", accessOwner, adminTimeout, queuedAction(a.operate.AcceptListing)),
	}
}

// list handles GET /api/connections. Owners see the state of all connections. Other viewers see the
// names of the connections that list a repository which they may see.
func (a *connectionRoutes) list(ctx context.Context, c *call) error {
	by, err := account.AsOwner(c.viewer)
	if err != nil {
		return c.answer(a.browse.VisibleConnections(ctx, c.viewer))
	}
	return c.answer(a.operate.Connections(ctx, by))
}

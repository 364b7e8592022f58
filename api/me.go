package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// callers is what the route of who asks needs.
type callers interface {
	Caller(catalog.Viewer) (*account.Caller, error)
}

// callerRoutes are the routes of who asks.
type callerRoutes struct{ callers callers }

func (a *callerRoutes) rows() []route {
	return []route{
		row("GET", "/api/me", accessRead, quickTimeout, a.tell).bySession(),
	}
}

// tell is GET /api/me.
func (a *callerRoutes) tell(_ context.Context, c *call) error {
	who, err := a.callers.Caller(c.viewer)
	if err != nil {
		return err
	}
	return c.json(who)
}

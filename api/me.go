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

type callerJSON struct {
	Kind      string `json:"kind"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Email     string `json:"email,omitempty"`
	Role      string `json:"role"`
	By        string `json:"by"`
	KeyID     string `json:"keyId,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

// tell is GET /api/me.
func (a *callerRoutes) tell(_ context.Context, c *call) error {
	who, err := a.callers.Caller(c.viewer)
	if err != nil {
		return err
	}
	return c.json(callerJSON{who.Kind, who.ID, who.Name, who.Email, who.Role.String(), who.By, who.KeyID, stamp(who.Expires)})
}

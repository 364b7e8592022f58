package api

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// callers tells who asks.
type callers interface {
	Caller(catalog.Viewer) (*account.Caller, error)
}

// keyRoutes are the routes of API keys, and of who asks.
type keyRoutes struct {
	apiKeys web.Keys
	callers callers
	now     func() time.Time
}

func (a *keyRoutes) rows() []route {
	return []route{
		row("GET", "/api/me", accessRead, quickTimeout, a.me).bySession(),
		row("GET", "/api/keys", accessHolder, adminTimeout, holders(a.list)),
		row("POST", "/api/keys", accessHolder, adminTimeout, holders(a.create)),
		row("DELETE", "/api/keys/{key}", accessHolder, adminTimeout, holders(a.revoke)),
	}
}

// list is GET /api/keys.
func (a *keyRoutes) list(ctx context.Context, c *call, by account.Holder) error {
	// Consistent asks the leader first: whoever has just made a key elsewhere sees it.
	p := c.params()
	consistent := p.flag("consistent", false)
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.apiKeys.Keys(ctx, by, consistent))
}

// me is GET /api/me.
func (a *keyRoutes) me(_ context.Context, c *call) error { return c.answer(a.callers.Caller(c.viewer)) }

// create is POST /api/keys. The key is in this answer and nowhere else.
func (a *keyRoutes) create(ctx context.Context, c *call, by account.Holder) error {
	// Who may ask for which key the node decides: a member gets none of an owner.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.CreateKeyRequest{Name: f.required("name"), Role: f.role(), User: f.text("user"), All: f.flag("allRepositories")}
	req.Expires = f.lifetime(a.now())
	if err := f.err(); err != nil {
		return err
	}

	c.status = 201
	return c.answer(a.apiKeys.CreateKey(ctx, by, req))
}

// revoke is DELETE /api/keys/{key}: by its id or its name.
func (a *keyRoutes) revoke(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.apiKeys.RevokeKey(ctx, by, c.wild[0]))
}

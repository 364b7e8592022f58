package api

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// callers describes the viewer of a call to the caller.
type callers interface {
	Caller(catalog.Viewer) (*account.Caller, error)
}

// keyRoutes handles API keys, and GET /api/me.
type keyRoutes struct {
	apiKeys web.Keys
	callers callers
	now     func() time.Time
}

func (a *keyRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/me", accessRead, quickTimeout, a.me).acceptingSession(),
		newRoute("GET", "/api/keys", accessHolder, adminTimeout, holderHandler(a.list)),
		newRoute("POST", "/api/keys", accessHolder, adminTimeout, holderHandler(a.create)),
		newRoute("DELETE", "/api/keys/{key}", accessHolder, adminTimeout, holderHandler(a.revoke)),
	}
}

// list handles GET /api/keys.
func (a *keyRoutes) list(ctx context.Context, c *call, by account.Holder) error {
	// With consistent the node first asks the leader for news, so that the list has a key that was
	// just created on another node.
	p := c.params()
	consistent := p.flag("consistent", false)
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.apiKeys.Keys(ctx, by, consistent))
}

// me handles GET /api/me: who the caller is.
func (a *keyRoutes) me(_ context.Context, c *call) error { return c.answer(a.callers.Caller(c.viewer)) }

// create handles POST /api/keys. Only this answer contains the key.
func (a *keyRoutes) create(ctx context.Context, c *call, by account.Holder) error {
	// CreateKey checks what the caller may create: a member cannot create an owner's key.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.CreateKeyRequest{Name: f.required("name"), Role: f.role(catalog.RoleMember, catalog.RoleOwner, catalog.RoleMetrics), User: f.text("user"), All: f.flag("allRepositories")}
	req.Expires = f.lifetime(a.now())
	if err := f.err(); err != nil {
		return err
	}

	c.status = 201
	return c.answer(a.apiKeys.CreateKey(ctx, by, req))
}

// revoke handles DELETE /api/keys/{key}, by id or name.
func (a *keyRoutes) revoke(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.apiKeys.RevokeKey(ctx, by, c.pathValues[0]))
}

package api

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/node/account"
)

// apiKeys is what the routes of keys need.
type apiKeys interface {
	CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error)
	Keys(context.Context, account.Holder, account.KeysRequest) (*account.KeysResponse, error)
	RevokeKey(context.Context, account.Holder, account.RevokeKeyRequest) (*account.RevokeKeyResponse, error)
}

// keyRoutes are the routes of API keys.
type keyRoutes struct {
	apiKeys apiKeys
	now     func() time.Time
}

func (a *keyRoutes) rows() []route {
	return []route{
		row("GET", "/api/keys", accessHolder, adminTimeout, holders(a.list)),
		row("POST", "/api/keys", accessHolder, adminTimeout, holders(a.create)),
		row("DELETE", "/api/keys/{key}", accessHolder, adminTimeout, holders(a.revoke)),
	}
}

// maxKeyDays bounds the life of a key that has an end.
const maxKeyDays = 3650

// list is GET /api/keys.
func (a *keyRoutes) list(ctx context.Context, c *call, by account.Holder) error {
	// Consistent asks the leader first: whoever has just made a key elsewhere sees it.
	p := c.params()
	req := account.KeysRequest{Consistent: p.flag("consistent", false)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.apiKeys.Keys(ctx, by, req)
	if err != nil {
		return err
	}
	return c.json(r.Keys)
}

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

	r, err := a.apiKeys.CreateKey(ctx, by, req)
	if err != nil {
		return err
	}

	c.status = 201
	return c.json(struct {
		account.KeyInfo
		Key string `json:"key"`
	}{r.Info, r.Key})
}

// revoke is DELETE /api/keys/{key}: by its id or its name.
func (a *keyRoutes) revoke(ctx context.Context, c *call, by account.Holder) error {
	r, err := a.apiKeys.RevokeKey(ctx, by, account.RevokeKeyRequest{Key: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(r.Info)
}

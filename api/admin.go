package api

import (
	"bytes"
	"context"
	"io"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/operate"
)

// accounts is what the routes of keys need.
type accounts interface {
	CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error)
	Keys(context.Context, account.Holder, account.KeysRequest) (*account.KeysResponse, error)
	RevokeKey(context.Context, account.Holder, account.RevokeKeyRequest) (*account.RevokeKeyResponse, error)
}

// members is what the routes of nodes and their catalog need.
type members interface {
	ApplyConfig(context.Context, account.Owner, configure.ApplyConfigRequest) (*configure.ApplyConfigResponse, error)
	Drain(context.Context, account.Owner, operate.DrainRequest) (*operate.DrainResponse, error)
	Undrain(context.Context, account.Owner, operate.DrainRequest) (*operate.UndrainResponse, error)
	Remove(context.Context, account.Owner, operate.RemoveRequest) (*operate.RemoveResponse, error)
	Snapshot(context.Context, account.Owner, io.Writer) error
}

type keyJSON struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Prefix    string `json:"prefix"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt,omitempty"`
	User      string `json:"user,omitempty"`
	All       bool   `json:"allRepositories,omitempty"`
}

func keyOf(k account.KeyInfo) keyJSON {
	return keyJSON{k.ID, k.Name, k.Role.String(), k.Prefix, stamp(k.Created), stamp(k.Expires), k.User, k.All}
}

// maxKeyDays bounds the life of a key that has an end.
const maxKeyDays = 3650

// keys is GET /api/keys.
func (s *Server) keys(ctx context.Context, c *call, by account.Holder) error {
	p := c.params()
	req := account.KeysRequest{Consistent: p.flag("consistent", false)}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.accounts.Keys(ctx, by, req)
	if err != nil {
		return err
	}
	out := make([]keyJSON, len(r.Keys))
	for i, k := range r.Keys {
		out[i] = keyOf(k)
	}
	return c.json(out)
}

// createKey is POST /api/keys. The key is in this answer and nowhere else.
func (s *Server) createKey(ctx context.Context, c *call, by account.Holder) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := account.CreateKeyRequest{Name: f.required("name"), Role: f.role(), User: f.text("user"), All: f.flag("allRepositories")}
	req.Expires = f.lifetime(s.opt.Now())
	if err := f.err(); err != nil {
		return err
	}
	r, err := s.parts.accounts.CreateKey(ctx, by, req)
	if err != nil {
		return err
	}
	c.status = 201
	return c.json(struct {
		keyJSON
		Key string `json:"key"`
	}{keyOf(r.Info), r.Key})
}

// revokeKey is DELETE /api/keys/{key}: by its id or its name.
func (s *Server) revokeKey(ctx context.Context, c *call, by account.Holder) error {
	r, err := s.parts.accounts.RevokeKey(ctx, by, account.RevokeKeyRequest{Key: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(keyOf(r.Info))
}

// drain is POST /api/nodes/{node}/drain: begins a drain, or tells how far it is.
func (s *Server) drain(ctx context.Context, c *call, by account.Owner) error {
	r, err := s.parts.members.Drain(ctx, by, operate.DrainRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(struct {
		Node      string `json:"node"`
		Done      bool   `json:"done"`
		Remaining int    `json:"remaining"`
		Warning   string `json:"warning,omitempty"`
	}{r.Node, r.Done, r.Remaining, r.Warning})
}

// undrain is POST /api/nodes/{node}/undrain.
func (s *Server) undrain(ctx context.Context, c *call, by account.Owner) error {
	r, err := s.parts.members.Undrain(ctx, by, operate.DrainRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(struct {
		Node string `json:"node"`
	}{r.Node})
}

// remove is POST /api/nodes/{node}/remove.
func (s *Server) remove(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := operate.RemoveRequest{Node: c.wild[0], AcceptLoss: p.flag("accept_loss", false)}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.members.Remove(ctx, by, req)
	if err != nil {
		return err
	}
	return c.json(struct {
		Node string   `json:"node"`
		Lost []string `json:"lost"`
	}{r.Node, list(r.Lost)})
}

// snapshot is GET /api/snapshot: the catalog as a file for `shoal snapshot
// restore`. It is written whole before it is sent, so that a client never
// takes half of one for a good one.
func (s *Server) snapshot(ctx context.Context, c *call, by account.Owner) error {
	var b bytes.Buffer
	if err := s.parts.members.Snapshot(ctx, by, &b); err != nil {
		return err
	}
	c.mime, c.body = "application/octet-stream", b.Bytes()
	c.setHeader("Content-Disposition", `attachment; filename="shoal-catalog.snapshot"`)
	return nil
}

package api

import (
	"bytes"
	"context"
	"time"

	"github.com/shoalsearch/shoal/node"
)

type keyJSON struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Prefix    string `json:"prefix"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

func keyOf(k node.KeyInfo) keyJSON {
	return keyJSON{k.ID, k.Name, k.Role.String(), k.Prefix, stamp(k.Created), stamp(k.Expires)}
}

// maxKeyDays bounds the life of a key that has an end.
const maxKeyDays = 3650

// keys is GET /api/keys.
func (s *Server) keys(ctx context.Context, c *call) error {
	p := c.params()
	req := node.KeysRequest{Consistent: p.flag("consistent", false)}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.node.Keys(ctx, c.viewer, req)
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
func (s *Server) createKey(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := node.CreateKeyRequest{Name: f.required("name"), Role: node.RoleMember}
	switch role := f.text("role"); role {
	case "", "member":
	case "owner":
		req.Role = node.RoleOwner
	default:
		f.wrong("role", "expected member or owner")
	}
	req.Expires = time.Duration(f.integer("expiresInDays", 0, 1, maxKeyDays)) * 24 * time.Hour
	if err := f.err(); err != nil {
		return err
	}
	r, err := s.node.CreateKey(ctx, c.viewer, req)
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
func (s *Server) revokeKey(ctx context.Context, c *call) error {
	r, err := s.node.RevokeKey(ctx, c.viewer, node.RevokeKeyRequest{Key: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(keyOf(r.Info))
}

// drain is POST /api/nodes/{node}/drain: begins a drain, or tells how far it is.
func (s *Server) drain(ctx context.Context, c *call) error {
	r, err := s.node.Drain(ctx, c.viewer, node.DrainRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(struct {
		Node      string `json:"node"`
		Done      bool   `json:"done"`
		Remaining int    `json:"remaining"`
	}{r.Node, r.Done, r.Remaining})
}

// remove is POST /api/nodes/{node}/remove.
func (s *Server) remove(ctx context.Context, c *call) error {
	p := c.params()
	req := node.RemoveRequest{Node: c.wild[0], AcceptLoss: p.flag("accept_loss", false)}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.node.Remove(ctx, c.viewer, req)
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
func (s *Server) snapshot(ctx context.Context, c *call) error {
	var b bytes.Buffer
	if err := s.node.Snapshot(ctx, c.viewer, &b); err != nil {
		return err
	}
	c.mime, c.body = "application/octet-stream", b.Bytes()
	c.setHeader("Content-Disposition", `attachment; filename="shoal-catalog.snapshot"`)
	return nil
}

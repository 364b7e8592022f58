package api

import (
	"bytes"
	"context"
	"io"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

// members is what the routes of nodes and of the catalog need.
type members interface {
	Drain(context.Context, account.Owner, operate.DrainRequest) (*operate.DrainResponse, error)
	Undrain(context.Context, account.Owner, operate.DrainRequest) (*operate.UndrainResponse, error)
	Lead(context.Context, account.Owner, operate.LeadRequest) (*operate.LeadResponse, error)
	Remove(context.Context, account.Owner, operate.RemoveRequest) (*operate.RemoveResponse, error)
	Snapshot(context.Context, account.Owner, io.Writer) error
}

// nodeRoutes are the routes of nodes, and of the catalog that they share.
type nodeRoutes struct{ members members }

func (a *nodeRoutes) rows() []route {
	return []route{
		row("POST", "/api/nodes/{node}/drain", accessOwner, adminTimeout, owners(a.drain)),
		row("POST", "/api/nodes/{node}/undrain", accessOwner, adminTimeout, owners(a.undrain)),
		row("POST", "/api/nodes/{node}/lead", accessOwner, adminTimeout, owners(a.lead)),
		row("POST", "/api/nodes/{node}/remove", accessOwner, adminTimeout, owners(a.remove)),
		row("GET", "/api/snapshot", accessOwner, adminTimeout, owners(a.snapshot)),
	}
}

// drain is POST /api/nodes/{node}/drain: begins a drain, or tells how far it is.
func (a *nodeRoutes) drain(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.members.Drain(ctx, by, operate.DrainRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(r)
}

// undrain is POST /api/nodes/{node}/undrain.
func (a *nodeRoutes) undrain(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.members.Undrain(ctx, by, operate.DrainRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(r)
}

// lead is POST /api/nodes/{node}/lead: another node leads.
func (a *nodeRoutes) lead(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.members.Lead(ctx, by, operate.LeadRequest{Node: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(r)
}

// remove is POST /api/nodes/{node}/remove.
func (a *nodeRoutes) remove(ctx context.Context, c *call, by account.Owner) error {
	// Nothing is lost by mistake: whoever removes the last copy of something says so.
	p := c.params()
	req := operate.RemoveRequest{Node: c.wild[0], AcceptLoss: p.flag("accept_loss", false)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.members.Remove(ctx, by, req)
	if err != nil {
		return err
	}
	return c.json(r)
}

// snapshot is GET /api/snapshot: the catalog as a file for `shoal snapshot
// restore`. It is written whole before it is sent, so that a client never
// takes half of one for a good one.
func (a *nodeRoutes) snapshot(ctx context.Context, c *call, by account.Owner) error {
	var b bytes.Buffer
	if err := a.members.Snapshot(ctx, by, &b); err != nil {
		return err
	}
	c.mime, c.body = "application/octet-stream", b.Bytes()
	c.setHeader("Content-Disposition", `attachment; filename="shoal-catalog.snapshot"`)
	return nil
}

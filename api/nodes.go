package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

// state reads the state of the node and its cluster.
type state interface {
	Status(context.Context, catalog.Viewer) (*node.StatusResponse, error)
	Ready() node.ReadyResponse
	Raft(context.Context, account.Owner) (*node.RaftResponse, error)
	Placement(context.Context, account.Owner, node.PlacementRequest) (*node.PlacementResponse, error)
}

// nodeRoutes handles nodes, raft, placement, and snapshots of the catalog.
type nodeRoutes struct {
	operate operate.Operator
	state   state
	base    func() string
}

func (a *nodeRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/raft", accessOwner, quickTimeout, ownerAnswer(a.state.Raft)),
		newRoute("GET", "/api/placement", accessOwner, quickTimeout, ownerHandler(a.placement)),
		newRoute("POST", "/api/nodes/{node}/drain", accessOwner, adminTimeout, ownerAction(a.operate.Drain)),
		newRoute("POST", "/api/nodes/{node}/undrain", accessOwner, adminTimeout, ownerAction(a.operate.Undrain)),
		newRoute("POST", "/api/nodes/{node}/lead", accessOwner, adminTimeout, ownerAction(a.operate.Lead)),
		newRoute("POST", "/api/nodes/{node}/remove", accessOwner, adminTimeout, ownerHandler(a.remove)),
		newRoute("GET", "/api/snapshot", accessOwner, streamTimeout, ownerHandler(a.snapshot)),
	}
}

// placement handles GET /api/placement: all nodes, and one page of the units of placement.
func (a *nodeRoutes) placement(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := node.PlacementRequest{Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.state.Placement(ctx, by, req)
	if err != nil {
		return err
	}
	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Units), r.Total, false})
	return c.json(r)
}

// remove handles POST /api/nodes/{node}/remove. If the node has the last copy of some data, the
// caller must accept its loss.
func (a *nodeRoutes) remove(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	acceptLoss := p.flag("accept_loss", false)
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.operate.Remove(ctx, by, c.pathValues[0], acceptLoss))
}

// snapshot handles GET /api/snapshot: the catalog as a file for `shoal snapshot restore`. The node
// completes the file before it sends it, so that a client never gets half a file. With chats=true
// it sends the conversations instead. They may be large, so they are streamed: the last entry of
// their file proves that it is whole.
func (a *nodeRoutes) snapshot(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	chats := p.flag("chats", false)
	if err := p.err(); err != nil {
		return err
	}
	if chats {
		c.mime = "application/x-tar"
		c.setHeader("Content-Disposition", `attachment; filename="shoal-chats.tar"`)
		c.stream = func(w *bufio.Writer) error {
			return errors.Join(a.operate.SnapshotChats(ctx, by, w), w.Flush())
		}
		return nil
	}

	var b bytes.Buffer
	if err := a.operate.Snapshot(ctx, by, &b); err != nil {
		return err
	}
	c.mime, c.body = "application/octet-stream", b.Bytes()
	c.setHeader("Content-Disposition", `attachment; filename="shoal-catalog.snapshot"`)
	return nil
}

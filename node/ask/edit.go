package ask

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/thread"
)

// editor changes threads for those whose they are.
type editor struct {
	archive *archive
	catalog Catalog
	store   *thread.Store
}

// changeable finds a thread that a viewer may change or delete.
func (e *editor) changeable(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	h, err := e.archive.fresh(ctx, v, id)
	switch {
	case err != nil:
		return nil, err
	case !owns(v, h):
		return nil, call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	// Every guest owns it, so every guest could take it from the others.
	case h.Owner == "":
		return nil, call.Fail(call.ErrForbidden, "A guest's thread is everybody's who has its link: nobody changes it. It goes after some days.")
	}
	return h, nil
}

// ChangeChat gives the viewer's thread another title, where that is not empty,
// and shares it or takes that back, where public is not nil.
func (e *editor) ChangeChat(ctx context.Context, v catalog.Viewer, id, name string, public *bool) error {
	h, err := e.changeable(ctx, v, id)
	if err != nil {
		return err
	}

	// The command always says who sees the thread: what is not told stays as it is now.
	c := &catalog.ChangeThread{Thread: id, Public: h.Public}
	if public != nil {
		c.Public = *public
	}

	if name != "" {
		// Sealed before it is proposed: the catalog is on every disk, and in snapshots.
		if c.Title, err = e.store.Seal(ctx, []byte(title(name))); err != nil {
			return call.WriteError(err)
		}
	}

	_, err = e.catalog.Propose(ctx, c)
	return call.WriteError(err)
}

// DeleteChat deletes the viewer's thread. A turn that is being answered ends.
func (e *editor) DeleteChat(ctx context.Context, v catalog.Viewer, id string) error {
	if _, err := e.changeable(ctx, v, id); err != nil {
		return err
	}
	_, err := e.catalog.Propose(ctx, &catalog.DeleteThread{Thread: id})
	return call.WriteError(err)
}

// ForkChat makes a thread of the viewer's own of one that he may see, and
// returns its id.
func (e *editor) ForkChat(ctx context.Context, v catalog.Viewer, id string) (string, error) {
	h, err := e.archive.fresh(ctx, v, id)
	if err != nil {
		return "", err
	}
	// The files are shared, not copied. A guest's is public, as there is nobody to be private for.
	c := &catalog.ForkThread{From: id, Thread: newID(), Owner: ownerOf(v), Title: h.Title, Public: v.Role == catalog.RoleGuest}
	if _, err := e.catalog.Propose(ctx, c); err != nil {
		return "", beginError(err)
	}
	return c.Thread, nil
}

package ask

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/thread"
)

// editor changes and deletes threads for their owners.
type editor struct {
	archive *archive
	catalog Catalog
	store   *thread.Store
}

// changeableThread returns a thread that the viewer may change or delete.
func (e *editor) changeableThread(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	h, err := e.archive.visibleOrNewThread(ctx, v, id)
	switch {
	case err != nil:
		return nil, err
	case !owns(v, h):
		return nil, call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	// All guests own the thread together, so any guest could take it from the other guests.
	case h.Owner == "":
		return nil, call.Fail(call.ErrForbidden, "A guest's thread is everybody's who has its link: nobody changes it. It goes after some days.")
	}
	return h, nil
}

// ChangeChat sets the title of the viewer's thread unless name is empty, and whether it is shared
// unless public is nil.
func (e *editor) ChangeChat(ctx context.Context, v catalog.Viewer, id, name string, public *bool) error {
	h, err := e.changeableThread(ctx, v, id)
	if err != nil {
		return err
	}

	// The command always sets Public, so keep the current value by default.
	c := &catalog.ChangeThread{Thread: id, Public: h.Public}
	if public != nil {
		c.Public = *public
	}

	if name != "" {
		// Encrypt the title before proposing it: the catalog is on every disk and in snapshots.
		if c.Title, err = e.store.Seal(ctx, []byte(titleOf(name))); err != nil {
			return call.WriteError(err)
		}
	}

	_, err = e.catalog.Propose(ctx, c)
	return call.WriteError(err)
}

// DeleteChat deletes the viewer's thread, and ends a turn that is running in it.
func (e *editor) DeleteChat(ctx context.Context, v catalog.Viewer, id string) error {
	if _, err := e.changeableThread(ctx, v, id); err != nil {
		return err
	}
	_, err := e.catalog.Propose(ctx, &catalog.DeleteThread{Thread: id})
	return call.WriteError(err)
}

// ForkChat copies a thread that the viewer may see into a new thread of the viewer. It returns
// the new id.
func (e *editor) ForkChat(ctx context.Context, v catalog.Viewer, id string) (string, error) {
	h, err := e.archive.visibleOrNewThread(ctx, v, id)
	if err != nil {
		return "", err
	}
	// The threads share their files. A guest's thread is public, since all guests are one owner.
	c := &catalog.ForkThread{From: id, Thread: newID(), Owner: ownerOf(v), Title: h.Title, Public: v.Role == catalog.RoleGuest}
	if _, err := e.catalog.Propose(ctx, c); err != nil {
		return "", beginError(err)
	}
	return c.Thread, nil
}

package api

import (
	"context"
	"errors"

	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// lastSeen adds to a failure which commit had a path last that is not there. Other
// failures stay as they are.
func (a *fileRoutes) lastSeen(ctx context.Context, c *call, missing error, req browse.LastSeenRequest) error {
	if !errors.Is(missing, nodecall.ErrFileNotFound) {
		return missing
	}

	// A repository that was taken from the viewer meanwhile is not there at all. What
	// else fails leaves the answer that there is: of its history nothing is known.
	r, err := a.files.LastSeen(ctx, c.viewer, req)
	f := asFailure(ctx, missing)
	switch {
	case errors.Is(err, nodecall.ErrRepoNotFound):
		return err
	case err != nil:
		f.seenBefore = &seenBefore{}
	case r.Path != "":
		f.seenBefore = seenOf(r)
	}
	return f
}

func seenOf(r *browse.LastSeenResponse) *seenBefore {
	if r.Removed == nil {
		return &seenBefore{IsWhole: !r.Late}
	}
	return &seenBefore{IsWhole: true, LastSeen: &lastSeenJSON{
		Path: r.Path, Type: r.Type, Commit: r.Commit, Renamed: r.Renamed,
		Removed: removedJSON{r.Removed.Hash, stamp(r.Removed.Date), r.Removed.Message},
	}}
}

package api

import (
	"context"
	"errors"

	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// lastSeen adds the last commit that had a missing path to the failure. Other failures stay
// unchanged.
func (a *fileRoutes) lastSeen(ctx context.Context, c *call, missing error, req browse.LastSeenRequest) error {
	if !errors.Is(missing, nodecall.ErrFileNotFound) {
		return missing
	}

	// If the viewer has just lost the repository, it does not exist. After other errors, answer
	// without history.
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

// seenOf converts the answer about a path that no longer exists to JSON.
func seenOf(r *browse.LastSeenResponse) *seenBefore {
	if r.Removed == nil {
		return &seenBefore{IsWhole: !r.Late}
	}
	return &seenBefore{IsWhole: true, LastSeen: &lastSeenJSON{
		Path: r.Path, Type: r.Type, Commit: r.Commit, Renamed: r.Renamed,
		Removed: removedJSON{r.Removed.Hash, formatTime(r.Removed.Date), r.Removed.Message},
	}}
}

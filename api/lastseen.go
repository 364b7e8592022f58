package api

import (
	"context"
	"errors"

	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// addLastSeen returns the failure for a missing path, with the last commit that had the path. Errors
// of other kinds it returns unchanged.
func (a *fileRoutes) addLastSeen(ctx context.Context, c *call, missing error, req browse.LastSeenRequest) error {
	if !errors.Is(missing, nodecall.ErrFileNotFound) {
		return missing
	}

	// If the viewer has just lost the right to read the repository, report it as missing. After other
	// errors of LastSeen, answer without a last commit.
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

// seenOf converts where a missing path existed last to JSON.
func seenOf(r *browse.LastSeenResponse) *seenBefore {
	if r.Removed == nil {
		return &seenBefore{IsWhole: !r.Late}
	}
	return &seenBefore{IsWhole: true, LastSeen: &lastSeenJSON{
		Path: r.Path, Type: r.Type, Commit: r.Commit, Renamed: r.Renamed,
		Removed: removedJSON{r.Removed.Hash, formatTime(r.Removed.Date), r.Removed.Message},
	}}
}

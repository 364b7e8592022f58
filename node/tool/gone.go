package tool

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
)

// tell adds details to an error about lines of a file: if the file was removed, the commit that did
// so.
func (at *linesAt) tell(ctx context.Context, v catalog.Viewer, b browse.Reader, err error) error {
	var failed *call.Error
	if !errors.As(err, &failed) {
		return err
	}

	if errors.Is(err, call.ErrFileNotFound) {
		if gone := at.removed(ctx, v, b); gone != "" {
			return call.Fail(call.ErrNotFound, "%s %s", sentence(failed.Message), gone)
		}
		at.values["path"] = at.path // what else is told of it speaks of the path
	}
	return err
}

// removed names the commit that removed the file, and the call that reads the lines before; "" if
// no such commit is known.
func (at *linesAt) removed(ctx context.Context, v catalog.Viewer, b browse.Reader) string {
	r, err := b.LastSeen(ctx, v, browse.LastSeenRequest{Repo: at.Text("repo"), Ref: at.ref, Paths: []string{at.path}})
	if err != nil || r.Removed == nil {
		return "" // an addition to what failed: that is told anyway
	}

	text := "It was removed by " + commitLine(r.Removed)
	if r.Renamed != "" {
		text += ", which moved it to " + paths.Quoted(r.Renamed)
	}
	return text + "; before that: " + at.with("ref", fmt.Sprintf("%.12s", r.Commit))
}

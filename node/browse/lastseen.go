package browse

import (
	"context"
	"errors"
	"io/fs"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/git"
)

// LastSeenRequest asks which commit had a path last that a revision does not have.
type LastSeenRequest struct {
	Repo  string
	Ref   string   // as of a SourceRequest
	Paths []string // the first of them that is not there is looked for
}

// LastSeenResponse is the commit that removed a path, in the history that git log
// tells of it.
type LastSeenResponse struct {
	Path    string      // that was looked for; "" where all of them are there
	Commit  string      // the last one that had it; "" where none had
	Type    string      // what it was there, as of a TreeNode
	Removed *CommitInfo // the commit after it, without the path; nil where none had it
	Renamed string      // where that commit moved the file; "" for nowhere, or where it was not found in time
	Late    bool        // not all of the history was looked at, or is there, and the part that was has nothing
}

// LastSeen looks for the commit that removed a path. It looks for two seconds at most.
func (b *Browser) LastSeen(ctx context.Context, v catalog.Viewer, req LastSeenRequest) (*LastSeenResponse, error) {
	if len(req.Paths) > maxPaths {
		return nil, call.Fail(call.ErrInvalid, "at most %d paths can be asked for at once", maxPaths)
	}
	return route(ctx, b, v, req.Repo, lastSeenOperation, req)
}

var lastSeenOperation = operation[LastSeenRequest, LastSeenResponse]{name: "lastseen", run: answerLastSeen, heavy: true}

// answerLastSeen looks for the first of the paths that a commit does not have.
func answerLastSeen(ctx context.Context, s *site, req LastSeenRequest) (*LastSeenResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	for _, path := range req.Paths {
		path = s.pathOf(ctx, commit, path)
		_, err := s.mirror.Stat(ctx, commit, path)
		switch {
		case err == nil:
			continue
		case errors.Is(err, git.ErrBadPath):
			return &LastSeenResponse{Path: path}, nil // no commit can have it
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, git.ErrNotDir):
			return s.lastSeen(ctx, commit, path)
		}
		return nil, err
	}
	return &LastSeenResponse{}, nil
}

// lastSeen looks for one path that a commit does not have.
func (s *site) lastSeen(ctx context.Context, commit, path string) (*LastSeenResponse, error) {
	gone, err := s.mirror.Gone(ctx, commit, path)
	if err != nil {
		return nil, err
	}

	shallow, err := s.mirror.Shallow()
	if err != nil {
		return nil, err
	}
	out := &LastSeenResponse{Path: path, Late: gone.Late || shallow && gone.Last == ""}
	if gone.Last == "" {
		return out, nil
	}
	out.Commit, out.Type, out.Renamed = gone.Last, typeOf(gone.Kind), gone.Renamed
	people, err := s.people(ctx, false)
	if err != nil {
		return nil, err
	}
	out.Removed = &s.commitInfos(ctx, []git.Commit{gone.Commit}, people)[0]
	return out, nil
}

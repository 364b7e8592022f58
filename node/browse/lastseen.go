package browse

import (
	"context"
	"errors"
	"io/fs"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/git"
)

// LastSeenRequest asks for the last commit that had a path which Ref lacks.
type LastSeenRequest struct {
	Repo  string
	Ref   string   // as in SourceRequest
	Paths []string // the answer is about the first missing one
}

// LastSeenResponse is the commit that removed a path, according to git log.
type LastSeenResponse struct {
	Path    string      // the first missing path; "" if none is missing
	Commit  string      // the last commit that had the path; "" if none did
	Type    string      // its type there, as in TreeNode
	Removed *CommitInfo // the next commit, without the path; nil if no commit had it
	Renamed string      // the file's new path in Removed; "" if it did not move, or was not found in time
	Late    bool        // nothing was found, but part of the history was not searched or is missing
}

// LastSeen searches for the commit that removed a path, for at most two seconds.
func (b *Browser) LastSeen(ctx context.Context, v catalog.Viewer, req LastSeenRequest) (*LastSeenResponse, error) {
	if len(req.Paths) > maxPaths {
		return nil, call.Fail(call.ErrInvalid, "at most %d paths can be asked for at once", maxPaths)
	}
	return route(ctx, b, v, req.Repo, lastSeenOperation, req)
}

var lastSeenOperation = operation[LastSeenRequest, LastSeenResponse]{name: "lastseen", run: answerLastSeen, heavy: true}

// answerLastSeen searches for the first path that the commit lacks.
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

// lastSeen searches for one path that the commit lacks.
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
	people, err := s.mailmap(ctx, false)
	if err != nil {
		return nil, err
	}
	out.Removed = &s.commitInfos(ctx, []git.Commit{gone.Commit}, people)[0]
	return out, nil
}

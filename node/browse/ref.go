package browse

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// RefRequest asks for the kind and commit of a reference.
type RefRequest struct {
	Repo string
	Ref  string // a branch, tag or commit as people write it; "" means HEAD
}

// Kinds of a reference.
const (
	RefBranch = "branch"
	RefTag    = "tag"
	RefCommit = "commit"
)

// RefResponse describes a reference.
type RefResponse struct {
	Commit  string `json:"commit"` // its whole hash
	Kind    string `json:"kind"`   // RefBranch, RefTag or RefCommit
	Name    string `json:"name"`   // short name of a branch or tag; hash of a commit
	Indexed bool   `json:"isIndexed"`
}

// Ref resolves a reference to a branch, a tag, or else a commit. It returns ErrNotFound if there
// is none.
func (b *Browser) Ref(ctx context.Context, v catalog.Viewer, req RefRequest) (*RefResponse, error) {
	return route(ctx, b, v, req.Repo, refOperation, req)
}

var refOperation = operation[RefRequest, RefResponse]{name: "ref", run: answerRef}

// answerRef resolves a reference and determines its kind.
func answerRef(ctx context.Context, s *site, req RefRequest) (*RefResponse, error) {
	// Other operations treat a missing ref as a bad argument. Here the ref is the subject, so the
	// error is ErrNotFound. For a ref with a date, check its name first.
	name := req.Ref
	if of, _, ok := cutDate(req.Ref); ok {
		name = of
	}
	if _, err := s.mirror.Resolve(ctx, s.fullRevision(name)); err != nil {
		return nil, s.explainRef(ctx, err, name, call.ErrNotFound)
	}

	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	full, err := s.mirror.FullName(ctx, s.fullRevision(req.Ref))
	if err != nil {
		return nil, err
	}

	if name, ok := strings.CutPrefix(full, "refs/heads/"); ok {
		return &RefResponse{Commit: commit, Kind: RefBranch, Name: name, Indexed: s.isIndexed(ctx, full)}, nil
	}
	if name, ok := strings.CutPrefix(full, "refs/tags/"); ok {
		return &RefResponse{Commit: commit, Kind: RefTag, Name: name, Indexed: s.isIndexed(ctx, full)}, nil
	}

	// A commit is indexed if any indexed revision points at it.
	at := func(r catalog.Revision) bool { return r.Commit == commit }
	return &RefResponse{Commit: commit, Kind: RefCommit, Name: commit, Indexed: slices.ContainsFunc(s.repo.Revisions, at)}, nil
}

// isIndexed reports whether a branch or tag is indexed, as the lists of refs show it.
func (s *site) isIndexed(ctx context.Context, full string) bool {
	branch, _ := s.mirror.DefaultBranch(ctx)
	return slices.ContainsFunc(s.repo.Revisions, func(r catalog.Revision) bool {
		return r.Name == full || r.Name == "HEAD" && full == "refs/heads/"+branch
	})
}

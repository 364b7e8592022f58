package browse

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// RefRequest asks what a reference is.
type RefRequest struct {
	Repo string
	Ref  string // a branch, tag or commit as people write it; "" means HEAD
}

// The kinds of a reference.
const (
	RefBranch = "branch"
	RefTag    = "tag"
	RefCommit = "commit"
)

// RefResponse is what a reference is.
type RefResponse struct {
	Commit  string `json:"commit"` // its whole hash
	Kind    string `json:"kind"`   // RefBranch, RefTag or RefCommit
	Name    string `json:"name"`   // short, of a branch or tag; of a commit its hash
	Indexed bool   `json:"isIndexed"`
}

// Ref tells what a reference is: the branch or tag that it names, or else the
// commit. ErrNotFound: there is none.
func (b *Browser) Ref(ctx context.Context, v catalog.Viewer, req RefRequest) (*RefResponse, error) {
	return route(ctx, b, v, req.Repo, refOperation, req)
}

var refOperation = operation[RefRequest, RefResponse]{name: "ref", run: answerRef}

// answerRef resolves a reference and says what it is.
func answerRef(ctx context.Context, s *site, req RefRequest) (*RefResponse, error) {
	// Elsewhere a ref that is not there is a mistake beside what is asked for; here it is
	// what is asked for. Of one that names a time the name comes first.
	name := req.Ref
	if of, _, ok := cutDate(req.Ref); ok {
		name = of
	}
	if _, err := s.mirror.Resolve(ctx, s.revision(name)); err != nil {
		return nil, s.explainRef(ctx, err, name, call.ErrNotFound)
	}

	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	full, err := s.mirror.FullName(ctx, s.revision(req.Ref))
	if err != nil {
		return nil, err
	}

	if name, ok := strings.CutPrefix(full, "refs/heads/"); ok {
		return &RefResponse{Commit: commit, Kind: RefBranch, Name: name, Indexed: s.indexed(ctx, full)}, nil
	}
	if name, ok := strings.CutPrefix(full, "refs/tags/"); ok {
		return &RefResponse{Commit: commit, Kind: RefTag, Name: name, Indexed: s.indexed(ctx, full)}, nil
	}

	// Of a commit it is enough that an indexed revision is at it, whatever it is called.
	at := func(r catalog.Revision) bool { return r.Commit == commit }
	return &RefResponse{Commit: commit, Kind: RefCommit, Name: commit, Indexed: slices.ContainsFunc(s.repo.Revisions, at)}, nil
}

// indexed reports whether the index has a branch or tag, as the lists of them tell it.
func (s *site) indexed(ctx context.Context, full string) bool {
	branch, _ := s.mirror.DefaultBranch(ctx)
	return slices.ContainsFunc(s.repo.Revisions, func(r catalog.Revision) bool {
		return r.Name == full || r.Name == "HEAD" && full == "refs/heads/"+branch
	})
}

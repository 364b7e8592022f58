package search

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
)

// GlobRequest asks for paths that match a glob.
type GlobRequest struct {
	Pattern string   // globs, as in paths.Filter
	Path    string   // directory that contains the paths
	Repo    string   // "" means all
	Repos   []string // if Repo is "": only these repositories; nil means all
	Ref     string
	Limit   int // limit of files; 0 means 100
}

// GlobResponse lists paths by repository.
type GlobResponse struct {
	Repos    []GlobRepo
	Files    int
	Coverage coverage.Coverage
}

// GlobRepo is the paths of one repository.
type GlobRepo struct {
	Repo  string
	Paths []string
}

// Glob finds paths that match a glob.
func (s *Searcher) Glob(ctx context.Context, v catalog.Viewer, req GlobRequest) (*GlobResponse, error) {
	if req.Pattern == "" {
		return nil, call.Fail(call.ErrInvalid, "pattern must not be empty")
	}
	if err := checkFiles(&req.Limit, false); err != nil {
		return nil, err
	}

	in, err := paths.OfGlob(req.Path, req.Pattern)
	if err != nil {
		return nil, err
	}
	in = in.In(req.Repos)

	rev, err := s.indexedRev(v, req.Repo, req.Ref)
	if err != nil {
		return nil, err
	}
	if rev == "" {
		return s.globUnindexed(ctx, v, req, in)
	}

	r, err := s.toolSearch(ctx, v, Lookup{
		Atoms:    in.Atoms(),
		Revision: rev,
		Repo:     req.Repo,
		files:    req.Limit,
		listing:  true,
	})
	if err != nil {
		return nil, err
	}
	defer r.close()

	// The search asked for one file more than the limit, so that it shows whether some are left
	// out.
	answer, err := r.respond()
	if err != nil {
		return nil, err
	}

	out := &GlobResponse{Coverage: AtRevision(UpTo(answer.Coverage, req.Limit, len(r.a.files)), r.q.visible, req.Repo, req.Repos, req.Ref)}

	for _, f := range answer.Files[:min(len(answer.Files), req.Limit)] {
		out.add(f.Repository, f.Path)
	}
	out.sortByName()
	return out, nil
}

func (r *GlobResponse) add(repo, path string) {
	i := slices.IndexFunc(r.Repos, func(g GlobRepo) bool { return g.Repo == repo })
	if i < 0 {
		i = len(r.Repos)
		r.Repos = append(r.Repos, GlobRepo{Repo: repo})
	}
	r.Repos[i].Paths = append(r.Repos[i].Paths, path)
}

// sortByName sorts repositories and paths by name. It lists a path once: a branch and a tag with the same
// name may both have it, with different contents.
func (r *GlobResponse) sortByName() {
	slices.SortFunc(r.Repos, func(a, b GlobRepo) int { return strings.Compare(a.Repo, b.Repo) })
	for i := range r.Repos {
		slices.Sort(r.Repos[i].Paths)
		r.Repos[i].Paths = slices.Compact(r.Repos[i].Paths)
		r.Files += len(r.Repos[i].Paths)
	}
}

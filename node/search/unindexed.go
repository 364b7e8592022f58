package search

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
)

// grepUnindexed searches a commit that is not indexed. It returns the indexed revision that was
// searched for the unchanged files; "" if there was none.
func (s *Searcher) grepUnindexed(ctx context.Context, v catalog.Viewer, req GrepRequest, in paths.Exprs) (*GrepResponse, string, error) {
	scan := browse.ScanRequest{
		Ref:     req.Ref,
		Paths:   in,
		Pattern: req.Pattern,
		Limit:   req.Limit,
		Context: req.Context,
		Counts:  req.Counts,
		Lexed:   req.Lexed,

		WordBegins: req.WordBegins,
		WordEnds:   req.WordEnds,
	}

	found, shared, err := s.besideIndex(ctx, v, req.Repo, scan, func(rev string, without int) (*root, error) {
		// Ask for more files, as many as the commit changes: those are removed again.
		t := req.search(in, rev)
		t.files += without
		return s.toolSearch(ctx, v, t)
	})
	if err != nil {
		return nil, "", err
	}

	files := found.Files
	for _, f := range shared.files {
		files = append(files, browse.ScanFile{Path: f.Path, Score: f.Score, Lines: req.linesOf(f.Chunks, f.Language), Matches: f.Matches})
	}
	slices.SortFunc(files, browse.BestFirst)

	out := &GrepResponse{Coverage: shared.coverageOf(found, req.Limit)}
	for _, f := range files[:min(len(files), req.Limit)] {
		if req.Counts {
			out.add(GrepFile{Repo: req.Repo, Path: f.Path, Matches: f.Matches, Ranges: f.Matches})
		} else {
			out.add(grepFile(req.Repo, f.Path, f.Lines, f.Matches))
		}
	}
	return out, found.Beside.Name, nil
}

// globUnindexed lists paths of a commit that is not indexed.
func (s *Searcher) globUnindexed(ctx context.Context, v catalog.Viewer, req GlobRequest, in paths.Exprs) (*GlobResponse, error) {
	scan := browse.ScanRequest{Ref: req.Ref, Paths: in, Limit: req.Limit}

	// Ask for more files, as many as the commit changes: those are removed again.
	found, shared, err := s.besideIndex(ctx, v, req.Repo, scan, func(rev string, without int) (*root, error) {
		return s.toolSearch(ctx, v, Lookup{
			Atoms:    in.Atoms(),
			Revision: rev,
			Repo:     req.Repo,
			files:    req.Limit + without,
			listing:  true,
		})
	})
	if err != nil {
		return nil, err
	}

	files := found.Files
	for _, f := range shared.files {
		files = append(files, browse.ScanFile{Path: f.Path, Score: f.Score})
	}
	slices.SortFunc(files, browse.BestFirst)

	out := &GlobResponse{Coverage: shared.coverageOf(found, req.Limit)}
	for _, f := range files[:min(len(files), req.Limit)] {
		out.add(req.Repo, f.Path)
	}
	out.sortByName()
	return out, nil
}

// sharedFiles are the files that the index has of a commit that is not indexed.
type sharedFiles struct {
	files    []shard.File
	coverage coverage.Coverage // of the search in the index
}

// coverageOf returns the coverage of an answer with limit files, from the mirror and from the
// index.
func (s *sharedFiles) coverageOf(found *browse.ScanResponse, limit int) coverage.Coverage {
	c := s.coverage.And(coverage.Of(s.coverage.Unit(), 1, 1))
	if found.Late {
		c = c.With(coverage.Gap{Kind: coverage.Late})
	}
	return UpTo(c, limit, found.Found+len(s.files))
}

// besideIndex searches a commit that is not indexed. It asks the mirror how the commit differs from
// the nearest indexed revision, and the index for what both share, which is nearly all for most
// commits. Its function search must return as many more files as there are paths to leave out.
func (s *Searcher) besideIndex(ctx context.Context, v catalog.Viewer, name string, req browse.ScanRequest, search func(rev string, without int) (*root, error)) (*browse.ScanResponse, *sharedFiles, error) {
	for try := 0; ; try++ {
		visible, err := s.d.Gate.Repos(v)
		if err != nil {
			return nil, nil, err
		}
		repo, err := visible.ByName(name)
		if err != nil {
			return nil, nil, err
		}

		// Each try uses the present revisions. The last one reads everything from the mirror, so
		// that a new index cannot interfere.
		req.Beside = nil
		if repo.Indexed() && try < maxTries {
			req.Beside = repo.Revisions
		}
		found, err := s.d.Scanner.Scan(ctx, v, name, req)
		if err != nil || found.Beside.Name == "" {
			return found, &sharedFiles{coverage: coverage.Of(coverage.Parts, 0, 0)}, err
		}

		r, err := search(found.Beside.Name, len(found.Without))
		if err != nil {
			return nil, nil, err
		}
		shared, err := r.filesExcept(name, found)
		r.close()
		if err != nil || shared != nil {
			return found, shared, err
		}
	}
}

// filesExcept returns the files of a search in an indexed revision, except for those that the mirror
// read. It returns nil if the revision has moved since the mirror was asked.
func (r *root) filesExcept(name string, found *browse.ScanResponse) (*sharedFiles, error) {
	repo, err := r.q.visible.ByName(name)
	// The repository was indexed again: the revision that the mirror compared with is gone.
	if err != nil || !slices.Contains(repo.Revisions, found.Beside) {
		return nil, nil
	}

	answer, err := r.respond()
	if err != nil {
		return nil, err
	}

	// The mirror has read these files as they are in the commit.
	changed := make(map[string]bool, len(found.Without))
	for _, path := range found.Without {
		changed[path] = true
	}
	return &sharedFiles{
		files:    slices.DeleteFunc(r.a.files, func(f shard.File) bool { return changed[f.Path] }),
		coverage: UpTo(answer.Coverage, r.q.leaf.Files-1, len(r.a.files)),
	}, nil
}

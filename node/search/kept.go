package search

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// keptFiles is how many files that are kept by name only are read for one
// search.
const keptFiles = 20

// mostKept is how many files that are kept by name only are looked at.
const mostKept = 1000

// searchKept adds to an answer what files that are kept by name only have.
// They are few and large, or odd; in one repository some of them are read from
// the mirror, the others are counted in the answer: what was not searched must
// not look as if it had no match. Binary files are no text and do not count.
func (s *Searcher) searchKept(ctx context.Context, v catalog.Viewer, req GrepRequest, in paths.Exprs, rev string, out *GrepResponse) error {
	// Then the mirror was read, and nothing of the index.
	if rev == "" {
		return nil
	}
	kept, err := s.KeptByName(ctx, v, in.Atoms(), rev, req.Repo)
	if err != nil || len(kept) == 0 {
		return err
	}

	if req.Repo != "" {
		if kept, err = s.readKept(ctx, v, req, kept, out); err != nil {
			return err
		}
	}
	out.Coverage = KeptOnly(out.Coverage, kept)
	return nil
}

// KeptOnly adds files that are kept by name only to a coverage.
func KeptOnly(c coverage.Coverage, files []coverage.File) coverage.Coverage {
	if len(files) == 0 {
		return c
	}
	return c.With(coverage.Gap{Kind: coverage.NameOnly, Count: len(files), Files: files})
}

// keptBytes is what a node remembers of the lists of KeptByName.
const keptBytes = 4 << 20

// KeptByName lists the texts that are kept by name only. Each answer about names or
// texts asks for them, and they change with the index alone: a node remembers them.
func (s *Searcher) KeptByName(ctx context.Context, v catalog.Viewer, where []query.Q, rev, repo string) ([]coverage.File, error) {
	t := Lookup{
		Atoms:    append([]query.Q{&query.Lang{Name: query.SkippedLang}}, where...),
		Revision: rev,
		Repo:     repo,
		files:    mostKept,
		listing:  true,
	}

	begun, err := s.toolRoot(ctx, v, t)
	if err != nil {
		return nil, err
	}
	kept, ok := s.kept.Get(begun.key())
	begun.close()
	if ok {
		return slices.Clone(kept), nil
	}

	r, err := s.toolSearch(ctx, v, t)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if _, err := r.respond(); err != nil {
		return nil, err
	}
	kept = unsearched(r.a.files)

	// What lacks a part may have it the next time. It is of the index that was searched,
	// which may be newer than the one before.
	if r.whole() {
		s.kept.Put(r.key(), kept, keptSize(kept))
	}
	return slices.Clone(kept), nil
}

// key stands for what a search finds: the query, and the index that it is asked of.
func (r *root) key() string { return string(digest(r.q.tree.String(), string(r.state()))) }

// unsearched are the files that have text, of those that are kept by name only: what git
// takes for binary has no lines to look at.
func unsearched(files []shard.File) []coverage.File {
	out := make([]coverage.File, 0, len(files))
	for _, f := range files {
		if f.Skipped != shard.SkippedBinary {
			out = append(out, coverage.File{Repo: f.RepoName, Path: f.Path, Why: f.Skipped})
		}
	}
	return out
}

func keptSize(kept []coverage.File) int64 {
	size := int64(lru.Cost)
	for _, f := range kept {
		size += int64(lru.Cost + len(f.Repo) + len(f.Path) + len(f.Why))
	}
	return size
}

// readKept searches as many of the files as it may in the mirror, and returns
// those that were not searched.
func (s *Searcher) readKept(ctx context.Context, v catalog.Viewer, req GrepRequest, kept []coverage.File, out *GrepResponse) ([]coverage.File, error) {
	scan := browse.ScanRequest{
		Ref:     req.Ref,
		Pattern: req.Pattern,
		Limit:   req.Limit,
		Context: req.Context,
		Counts:  req.Counts,

		WordBegins: req.WordBegins,
		WordEnds:   req.WordEnds,
	}
	for _, f := range kept[:min(len(kept), keptFiles)] {
		scan.Only = append(scan.Only, f.Path)
	}

	// Without the mirror they stay unsearched, which the answer says.
	found, err := s.d.Scanner.Scan(ctx, v, req.Repo, scan)
	if err != nil {
		return kept, nil
	}

	have := map[string]bool{}
	for _, f := range out.Files {
		have[f.Path] = true
	}

	// The mirror may have found more than it shows, too.
	all := len(out.Files) + found.Found
	for _, f := range found.Files {
		switch {
		case have[f.Path]:
			all--
		case len(out.Files) >= req.Limit:
		case req.Counts:
			out.add(GrepFile{Repo: req.Repo, Path: f.Path, Matches: f.Matches, Ranges: f.Matches})
		default:
			out.add(grepFile(req.Repo, f.Path, f.Lines, f.Matches))
		}
	}
	out.Coverage = UpTo(out.Coverage, req.Limit, all)

	return slices.DeleteFunc(kept, func(f coverage.File) bool { return slices.Contains(found.Looked, f.Path) }), nil
}

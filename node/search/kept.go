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

// keptFiles is how many files that are kept by name only are read from the mirror for one search.
const keptFiles = 20

// mostKept is how many files that are kept by name only are listed.
const mostKept = 1000

// addKeptFiles adds the matches in files that are kept by name only to a response. Such files are few
// and large, or odd. In one repository it reads some of them from the mirror. The response names
// the others, so that they do not look as if they had no match. Binary files are no text and do not
// count.
func (s *Searcher) addKeptFiles(ctx context.Context, v catalog.Viewer, req GrepRequest, in paths.Exprs, rev string, out *GrepResponse) error {
	// Then the response comes from the mirror alone.
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

// KeptOnly adds a gap for files that are kept by name only to a coverage.
func KeptOnly(c coverage.Coverage, files []coverage.File) coverage.Coverage {
	if len(files) == 0 {
		return c
	}
	return c.With(coverage.Gap{Kind: coverage.NameOnly, Count: len(files), Files: files})
}

// KeptByName lists the text files that are kept by name only. Each answer about names or texts
// needs the list. It changes only with the index, so a node caches it.
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
	kept = textFiles(r.a.files)

	// Do not cache an incomplete list. The key is of the index that was searched, which may be
	// newer than the one above.
	if r.complete() {
		s.kept.Put(r.key(), kept, keptSize(kept))
	}
	return slices.Clone(kept), nil
}

// key identifies what a search finds: by the query and the index.
func (r *root) key() string { return string(digest(r.q.tree.String(), string(r.state()))) }

// textFiles returns the text files among files that are kept by name only. It leaves out binary
// files, which have no lines.
func textFiles(files []shard.File) []coverage.File {
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

// readKept searches as many of the files in the mirror as it may, and returns those that were not
// searched.
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

	// Without the mirror the files stay unsearched, and the response says so.
	found, err := s.d.Scanner.Scan(ctx, v, req.Repo, scan)
	if err != nil {
		return kept, nil
	}

	have := map[string]bool{}
	for _, f := range out.Files {
		have[f.Path] = true
	}

	// The mirror may have found more files than it returns.
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

package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// shape is what an answer is made of. All that depends on it is here: what a
// leaf is asked for, what of its files is kept, what is given out and what that
// takes of the limit of matches.
type shape struct {
	listing bool // only that files match is asked, not where

	// limit sets how much a leaf may answer with, given how much the whole
	// answer still has room for.
	limit func(leaf *leafRequest, left int)

	// keep takes out the files that the answer does not need. They are in order.
	keep func(files []shard.File) []shard.File

	// fill puts files into an answer that still has room for left.
	fill func(r *root, out *Response, files []shard.File, left int)

	// used is how much of the limit a part of the answer took.
	used func(part *Response) int

	// count puts what the answer itself counts over what the shards counted.
	count func(stats *shard.Stats, answer shard.Stats)
}

// shapeOf is the shape that type: asks for.
func shapeOf(typ query.Type) *shape {
	switch typ {
	case query.FileType:
		return &ofFiles
	case query.RepoType:
		return &ofRepositories
	}
	return &ofMatches
}

// ofMatches is files with the places that match. The limit is one of places; a
// file without any takes one.
var ofMatches = shape{
	limit: func(leaf *leafRequest, left int) { leaf.Matches = max(left, 1) },
	keep:  all,
	fill:  fillFiles,
	used:  func(part *Response) int { return max(part.Stats.ActualMatches, len(part.Files)) },
	count: func(*shard.Stats, shard.Stats) {},
}

// ofFiles is files without places. Each counts once, however much is in it.
var ofFiles = shape{
	listing: true,
	limit:   func(leaf *leafRequest, left int) { leaf.Matches, leaf.Files = MaxMatches, max(left, 1) },
	keep:    all,
	fill:    fillFiles,
	used:    func(part *Response) int { return len(part.Files) },
	count:   func(*shard.Stats, shard.Stats) {},
}

// ofRepositories is repositories that have a match. A leaf cannot know which
// others have found already, so it is asked for all, of each shard by one file.
var ofRepositories = shape{
	listing: true,
	limit: func(leaf *leafRequest, _ int) {
		leaf.Matches, leaf.FilesOnly, leaf.OnePerRepo = MaxMatches, true, true
	},
	keep:  onePerRepository,
	fill:  fillRepositories,
	used:  func(part *Response) int { return part.Stats.ActualMatches },
	count: func(s *shard.Stats, answer shard.Stats) { s.Files, s.TotalMatches = answer.Files, answer.TotalMatches },
}

func all(files []shard.File) []shard.File { return files }

// onePerRepository keeps the first file of each repository: one is enough to
// name it.
func onePerRepository(files []shard.File) []shard.File {
	had := map[uint32]bool{}
	return slices.DeleteFunc(files, func(f shard.File) bool {
		again := had[f.Repo]
		had[f.Repo] = true
		return again
	})
}

// fillFiles makes files the answer, and joins their names and links. The
// repositories of the files follow by name: their numbers depend on others.
func fillFiles(r *root, out *Response, files []shard.File, left int) {
	if left <= 0 {
		return
	}

	used := map[uint32]bool{}
	ranges := 0
	for _, f := range files {
		repo := r.seen.View.Repo(f.Repo)
		if repo == nil {
			continue
		}
		if !used[f.Repo] {
			// Each repository once, however many of its files there are.
			used[f.Repo] = true
			out.Repositories = append(out.Repositories, browse.InfoOf(repo, r.d.BaseURL))
		}

		ranges += countRanges(f)
		out.Files = append(out.Files, r.file(repo, f))
	}

	out.Stats.ActualMatches = ranges
	slices.SortFunc(out.Repositories, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
}

// fillRepositories makes repositories the answer: by name, each in one part
// only, and no more than asked for. All are counted.
func fillRepositories(r *root, out *Response, files []shard.File, _ int) {
	if r.given == nil {
		r.given = map[uint32]bool{}
	}

	var list []browse.RepoInfo
	for _, f := range files {
		repo := r.seen.View.Repo(f.Repo)
		if repo == nil || r.given[f.Repo] {
			continue
		}
		r.given[f.Repo] = true
		list = append(list, browse.InfoOf(repo, r.d.BaseURL))
	}

	// A repository is told in one batch of a stream only, so each batch is sorted by itself.
	slices.SortFunc(list, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
	out.Stats.Files, out.Stats.TotalMatches = len(list), len(list)

	// Those of earlier answers are counted too.
	list = slices.DeleteFunc(list, func(repo browse.RepoInfo) bool { return !r.beyond(repo.Name) })

	// Counted over all batches.
	if most := max(r.req.Matches-r.returned, 0); len(list) > most {
		list, r.cut, r.namesCut = list[:most], true, true
		out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
	}

	r.returned += len(list)
	out.Repositories, out.Stats.ActualMatches = list, len(list)
}

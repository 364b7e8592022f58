package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

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
	listing:      true,
	repositories: true,
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
func fillFiles(a *answer, out *Response, files []shard.File, left int) {
	if left <= 0 {
		return
	}

	used := map[uint32]bool{}
	ranges := 0
	for _, f := range files {
		repo := a.q.sight.View.Repo(f.Repo)
		if repo == nil {
			continue
		}
		if !used[f.Repo] {
			// Each repository once, however many of its files there are.
			used[f.Repo] = true
			out.Repositories = append(out.Repositories, browse.InfoOf(repo, a.q.base))
		}

		ranges += countRanges(f)
		out.Files = append(out.Files, a.q.file(repo, f))
	}

	out.Stats.ActualMatches = ranges
	slices.SortFunc(out.Repositories, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
}

// fillRepositories makes repositories the answer: by name, each in one part
// only, and no more than asked for. All are counted.
func fillRepositories(a *answer, out *Response, files []shard.File, _ int) {
	if a.named == nil {
		a.named = map[uint32]bool{}
	}

	var list []browse.RepoInfo
	for _, f := range files {
		repo := a.q.sight.View.Repo(f.Repo)
		if repo == nil || a.named[f.Repo] {
			continue
		}
		a.named[f.Repo] = true
		list = append(list, browse.InfoOf(repo, a.q.base))
	}

	// A repository is told in one batch of a stream only, so each batch is sorted by itself.
	slices.SortFunc(list, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
	out.Stats.Files, out.Stats.TotalMatches = len(list), len(list)

	// Those of earlier answers are counted too.
	list = slices.DeleteFunc(list, func(repo browse.RepoInfo) bool { return !a.q.beyond(repo.Name) })

	// Counted over all batches.
	if most := max(a.q.req.Matches-a.returned, 0); len(list) > most {
		list, a.cut, a.namesCut = list[:most], true, true
		out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
	}

	a.returned += len(list)
	out.Repositories, out.Stats.ActualMatches = list, len(list)
}

// file joins names and links to a file of an answer.
func (q *question) file(repo *catalog.Repo, f shard.File) File {
	if commit := q.commits[f.Repo]; commit != "" {
		f.Revisions = []string{commit}
	}

	// A link leads to one of the revisions that have the file.
	rev := "HEAD"
	if len(f.Revisions) > 0 {
		rev = f.Revisions[0]
	}
	return File{
		RepoID:     f.Repo,
		Repository: repo.Name,
		Path:       f.Path,
		NameRanges: f.NameMatch,

		Language:       f.Language,
		Encoding:       f.Encoding,
		Ref:            browse.LinkRef(repo, rev),
		WebURL:         browse.WebURL(q.base, repo.Name, browse.LinkRef(repo, rev), "blob", f.Path),
		ExternalWebURL: browse.ExternalURL(repo, rev, f.Path),
		Chunks:         f.Chunks,
		Matches:        f.Matches,

		Branches: f.Revisions,
		Content:  f.Content,
		OID:      f.OID,
		Score:    f.Score,
	}
}

// beyond reports whether a repository of a list of them stands behind the cursor.
func (q *question) beyond(name string) bool {
	return q.from == nil || name > q.from.Repo
}

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

// shapeOf returns the shape for a type: of a query.
func shapeOf(typ query.Type) *shape {
	switch typ {
	case query.FileType:
		return &ofFiles
	case query.RepoType:
		return &ofRepositories
	}
	return &ofMatches
}

// ofMatches is the shape of files with the places that match. The limit counts places; a file
// without places counts as one.
var ofMatches = shape{
	limit: func(leaf *leafRequest, left int) { leaf.Matches = max(left, 1) },
	keep:  keepAll,
	fill:  fillFiles,
	used:  func(part *Response) int { return max(part.Stats.ActualMatches, len(part.Files)) },
	count: func(*shard.Stats, shard.Stats) {},
}

// ofFiles is the shape of files without places. The limit counts files.
var ofFiles = shape{
	listing: true,
	limit:   func(leaf *leafRequest, left int) { leaf.Matches, leaf.Files = MaxMatches, max(left, 1) },
	keep:    keepAll,
	fill:    fillFiles,
	used:    func(part *Response) int { return len(part.Files) },
	count:   func(*shard.Stats, shard.Stats) {},
}

// ofRepositories is the shape of repositories with a match. A leaf cannot know which repositories
// other leaves have found, so it returns all, with one file for each in a shard.
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

func keepAll(files []shard.File) []shard.File { return files }

// onePerRepository keeps the first file of each repository, which is enough to name it.
func onePerRepository(files []shard.File) []shard.File {
	listed := map[uint32]bool{}
	return slices.DeleteFunc(files, func(f shard.File) bool {
		again := listed[f.Repo]
		listed[f.Repo] = true
		return again
	})
}

// fillFiles adds files to the response, with their names and links, and the repositories of these
// files by name. Repository ids would reveal other repositories, so they give no order.
func fillFiles(a *answer, out *Response, files []shard.File, left int) {
	if left <= 0 {
		return
	}

	listed := map[uint32]bool{}
	ranges := 0
	for _, f := range files {
		repo := a.q.visible.View.Repo(f.Repo)
		if repo == nil {
			continue
		}
		if !listed[f.Repo] {
			// Add each repository once, however many files it has.
			listed[f.Repo] = true
			out.Repositories = append(out.Repositories, browse.InfoOf(repo, a.q.base))
		}

		ranges += countRanges(f)
		out.Files = append(out.Files, a.q.file(repo, f))
	}

	out.Stats.ActualMatches = ranges
	slices.SortFunc(out.Repositories, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
}

// fillRepositories adds repositories to the response: by name, each in one part only, and at most
// the limit. It counts all of them.
func fillRepositories(a *answer, out *Response, files []shard.File, _ int) {
	if a.counted == nil {
		a.counted = map[uint32]bool{}
	}

	var list []browse.RepoInfo
	for _, f := range files {
		repo := a.q.visible.View.Repo(f.Repo)
		if repo == nil || a.counted[f.Repo] {
			continue
		}
		a.counted[f.Repo] = true
		info := browse.InfoOf(repo, a.q.base)
		info.Description, info.Stars, info.PushedAt = repo.Description, repo.Stars, repo.PushedAt
		list = append(list, info)
	}

	// A repository is in one part of a stream only, so each part is sorted on its own.
	slices.SortFunc(list, func(a, b browse.RepoInfo) int { return strings.Compare(a.Name, b.Name) })
	out.Stats.Files, out.Stats.TotalMatches = len(list), len(list)

	// Repositories of earlier pages count too, but are not listed again.
	list = slices.DeleteFunc(list, func(repo browse.RepoInfo) bool { return !a.q.behindCursor(repo.Name) })

	// The limit applies to all parts together.
	if most := max(a.q.req.Matches-a.returned, 0); len(list) > most {
		list, a.cut, a.namesCut = list[:most], true, true
		out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
	}

	a.returned += len(list)
	out.Repositories, out.Stats.ActualMatches = list, len(list)
}

// file returns a file of a response with its names and links.
func (q *question) file(repo *catalog.Repo, f shard.File) File {
	if commit := q.commits[f.Repo]; commit != "" {
		f.Revisions = []string{commit}
	}

	// A link names one of the revisions that have the file.
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

// behindCursor reports whether a repository comes after the cursor of a list of repositories.
func (q *question) behindCursor(name string) bool {
	return q.from == nil || name > q.from.Repo
}

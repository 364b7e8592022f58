package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
)

// take merges one response into the answer and keeps the answer within its
// limits.
func (r *root) take(res *leafResponse) {
	r.stats.Stats.Add(res.Stats)
	r.stats.Wait = max(r.stats.Wait, res.Wait)
	r.cut = r.cut || res.Cut
	r.takeUntagged(res.Untagged)
	r.more = r.more || res.More

	// The order of an answer goes by names, which the leaves do not send.
	for i := range res.Files {
		if repo := r.seen.View.Repo(res.Files[i].Repo); repo != nil {
			res.Files[i].RepoName = repo.Name
		}
	}

	if res.Full {
		r.endAt(res.Files)
	}
	r.files = append(r.files, res.Files...)
	slices.SortStableFunc(r.files, compareFiles)
	r.files = r.upToEnd(r.shape.keep(r.files))

	files, cut, full := limitFiles(r.files, limits{r.leaf.Matches, r.leaf.Files, memoryLimit, r.req.ContextLines})
	r.files = files
	if full {
		r.endAt(files)
	}
	r.cut, r.more = r.cut || cut, r.more || cut
}

// takeUntagged notes files whose symbols are not known.
func (r *root) takeUntagged(u shard.UntaggedFiles) {
	if u.Count == 0 {
		return
	}
	gap := coverage.Gap{Kind: coverage.Symbols, Count: u.Count}
	for _, f := range u.First {
		if repo := r.seen.View.Repo(f.Repo); repo != nil {
			gap.Files = append(gap.Files, coverage.File{Repo: repo.Name, Path: f.Path})
		}
	}
	r.untagged = append(r.untagged, gap)
}

// endAt notes that files behind the last of these may lack, as there was no memory for
// them.
func (r *root) endAt(files []shard.File) {
	if len(files) == 0 {
		return
	}
	last := files[len(files)-1]
	if r.last == nil || compareFiles(last, *r.last) < 0 {
		r.last = &last
	}
}

// upToEnd is files without those behind which others lack, so that another answer can
// go on from there.
func (r *root) upToEnd(files []shard.File) []shard.File {
	if r.last == nil || !r.req.Pages || r.shape == &ofRepositories {
		return files
	}
	n := len(files)
	for n > 0 && compareFiles(files[n-1], *r.last) > 0 {
		n--
	}
	return files[:n]
}

// compareFiles is the total order of an answer.
func compareFiles(a, b shard.File) int {
	switch {
	case a.Score != b.Score:
		if a.Score > b.Score {
			return -1
		}
		return 1
	case a.RepoName != b.RepoName:
		return strings.Compare(a.RepoName, b.RepoName)
	case a.Path != b.Path:
		return strings.Compare(a.Path, b.Path)
	}

	// The same path in revisions that differ: by their names, then content.
	if c := slices.Compare(a.Revisions, b.Revisions); c != 0 {
		return c
	}
	return strings.Compare(a.OID, b.OID)
}

// countRanges counts the ranges of a file, in name and content.
func countRanges(f shard.File) int {
	n := len(f.NameMatch)
	for _, c := range f.Chunks {
		n += len(c.Ranges)
	}
	return n
}

// limits bound what an answer shows.
type limits struct {
	matches int
	files   int // 0 for any number
	memory  int64
	context int // lines around a match, of which one that is left out takes its own along
}

// limitFiles keeps what fits, in the order given. full: the memory was what ended it.
func limitFiles(files []shard.File, most limits) (kept []shard.File, cut, full bool) {
	left, memory := most.matches, most.memory
	for i := range files {
		memory -= sizeOf(files[i])
		if left <= 0 || memory < 0 || most.files > 0 && i == most.files {
			return files[:i], true, memory < 0
		}

		// A file without ranges matched by its name, which counts as one.
		n := max(countRanges(files[i]), 1)
		if n > left {
			files[i] = trimFile(files[i], left, most.context)
			return files[:i+1], true, false
		}
		left -= n
	}
	return files, false, false
}

// sizeOf is the memory that a file of an answer takes, about.
func sizeOf(f shard.File) int64 {
	const self, perRange = 512, 24
	size := self + int64(len(f.Content))
	for _, c := range f.Chunks {
		size += int64(len(c.Content)) + perRange*int64(len(c.Ranges))
	}
	return size
}

// trimFile keeps the first ranges of a file: of its content, and where some are left of
// its name.
func trimFile(f shard.File, left, context int) shard.File {
	inside := countRanges(f) - len(f.NameMatch)
	f.NameMatch = f.NameMatch[:min(len(f.NameMatch), max(0, left-inside))]

	var chunks []shard.Chunk
	for _, c := range f.Chunks {
		if left == 0 {
			break
		}
		if len(c.Ranges) > left {
			c = c.First(left, context)
		}
		left -= len(c.Ranges)
		chunks = append(chunks, c)
	}

	f.Chunks = chunks
	return f
}

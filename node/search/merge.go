package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
)

// answer is the merged result so far. The goroutine that runs the search owns it.
type answer struct {
	q *question

	files     []shard.File
	stats     Stats
	most      limits // of the whole answer, or of one part of a stream
	cut       bool
	wordFiles []int          // by word: in how many files it may be
	untagged  []coverage.Gap // files with unknown symbols, if the query asks for symbols
	unindexed []string       // names of repositories
	joined    bool           // files includes what was read from git
	more      bool           // there are files or matches after those that came back
	last      *shard.File    // files after this one may be missing because memory was full; nil means none

	// The parts that are missing, and the reasons.
	lost     []*target // shards that did not answer
	unasked  int       // shards left out because the limit was reached before
	overload error     // why shards are missing if their holders are overloaded
	failed   []string  // nodes
	hedged   int
	timeout  bool
	refused  uint64 // index of a catalog that lets the viewer see less than the query needs; 0 means none

	// Only for type:repo, where repositories are the answer.
	counted  map[uint32]bool // repositories that were counted
	returned int             // repositories that were returned
	namesCut bool            // there are more repositories than were returned
}

// merge merges a response into the answer, and cuts the answer to its limits.
func (a *answer) merge(res *leafResponse) {
	a.stats.Stats.Add(res.Stats)
	a.stats.Wait = max(a.stats.Wait, res.Wait)
	a.cut = a.cut || res.Cut
	a.takeUntagged(res.Untagged)
	a.more = a.more || res.More
	for i := range min(len(a.wordFiles), len(res.WordFiles)) {
		a.wordFiles[i] += res.WordFiles[i]
	}

	// Files are sorted by repository name, which the leaves do not send.
	for i := range res.Files {
		if repo := a.q.visible.View.Repo(res.Files[i].Repo); repo != nil {
			res.Files[i].RepoName = repo.Name
		}
	}

	if res.Full {
		a.endAt(res.Files)
	}
	a.files = append(a.files, res.Files...)
	slices.SortStableFunc(a.files, compareFiles)
	a.files = a.upToEnd(a.q.shape.keep(a.files))

	files, cut, full := limitFiles(a.files, a.most)
	a.files = files
	if full {
		a.endAt(files)
	}
	a.cut, a.more = a.cut || cut, a.more || cut
}

// takeUntagged adds a gap for files with unknown symbols.
func (a *answer) takeUntagged(u shard.UntaggedFiles) {
	if u.Count == 0 {
		return
	}
	gap := coverage.Gap{Kind: coverage.Symbols, Count: u.Count}
	for _, f := range u.First {
		if repo := a.q.visible.View.Repo(f.Repo); repo != nil {
			gap.Files = append(gap.Files, coverage.File{Repo: repo.Name, Path: f.Path})
		}
	}
	a.untagged = append(a.untagged, gap)
}

// endAt records that files after the last of these may be missing, because there was no memory for
// them.
func (a *answer) endAt(files []shard.File) {
	if len(files) == 0 {
		return
	}
	last := files[len(files)-1]
	if a.last == nil || compareFiles(last, *a.last) < 0 {
		a.last = &last
	}
}

// upToEnd removes the files after the point from which others may be missing, so that the next
// answer can continue there.
func (a *answer) upToEnd(files []shard.File) []shard.File {
	if a.last == nil || !a.q.req.Pages || a.q.shape.repositories {
		return files
	}
	n := len(files)
	for n > 0 && compareFiles(files[n-1], *a.last) > 0 {
		n--
	}
	return files[:n]
}

// compareFiles orders the files of an answer.
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

	// The same path may occur in different revisions.
	if c := slices.Compare(a.Revisions, b.Revisions); c != 0 {
		return c
	}
	return strings.Compare(a.OID, b.OID)
}

// countRanges returns the number of ranges in the name and content of a file.
func countRanges(f shard.File) int {
	n := len(f.NameMatch)
	for _, c := range f.Chunks {
		n += len(c.Ranges)
	}
	return n
}

// limits are the limits of an answer.
type limits struct {
	matches int
	files   int // 0 means no limit
	memory  int64
	context int // lines around a match, which are removed together with it
}

// limitFiles keeps the first files that fit. full reports that memory was the limit.
func limitFiles(files []shard.File, most limits) (kept []shard.File, cut, full bool) {
	left, memory := most.matches, most.memory
	for i := range files {
		memory -= sizeOf(files[i])
		if left <= 0 || memory < 0 || most.files > 0 && i == most.files {
			return files[:i], true, memory < 0
		}

		// A file without ranges matched as a whole, and counts as one.
		n := max(countRanges(files[i]), 1)
		if n > left {
			files[i] = trimFile(files[i], left, most.context)
			return files[:i+1], true, false
		}
		left -= n
	}
	return files, false, false
}

// sizeOf returns about how much memory a file of an answer takes.
func sizeOf(f shard.File) int64 {
	const self, perRange = 512, 24
	size := self + int64(len(f.Content))
	for _, c := range f.Chunks {
		size += int64(len(c.Content)) + perRange*int64(len(c.Ranges))
	}
	return size
}

// trimFile keeps the first left ranges of a file: those in its content, then those in its name.
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

// documents returns the number of documents in the repositories of the search. Documents of other
// repositories in the same files do not count.
func (a *answer) documents() (sum int) {
	for it := a.q.repos.Iterator(); it.HasNext(); {
		repo := a.q.visible.View.Repo(it.Next())
		if repo == nil {
			continue
		}
		for _, s := range repo.Shards {
			sum += int(s.Docs)
		}
	}
	return sum
}

// missing returns how many shards had to answer and did not.
func (a *answer) missing() int { return a.stats.ShardsRequired - a.stats.ShardsAnswered - a.unasked }

// lostRepos returns the names of the repositories with a shard that did not answer.
func (a *answer) lostRepos() (names []string) {
	for _, t := range a.lost {
		for _, p := range t.group.Parts {
			if repo := a.q.visible.View.Repo(p.Repo); repo != nil {
				names = append(names, repo.Name)
			}
		}
	}
	return names
}

// overtaken reports whether a repository of a lost shard has other files in a newer view, because
// it was indexed again or packed.
func (a *answer) overtaken(view *catalog.View) bool {
	return slices.ContainsFunc(a.lost, func(t *target) bool {
		return slices.ContainsFunc(t.group.Parts, func(p shard.Part) bool {
			old, now := a.q.visible.View.Repo(p.Repo), view.Repo(p.Repo)
			return now == nil || old == nil || !slices.Equal(now.Shards, old.Shards)
		})
	})
}

// reportProgress reports how many shards have answered to whoever watches the search.
func (a *answer) reportProgress() {
	if a.q.leaf.progress != nil {
		a.q.req.Progress.answered.Store(int64(a.stats.ShardsAnswered))
		a.q.req.Progress.required.Store(int64(a.stats.ShardsRequired))
	}
}

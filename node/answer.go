package node

import (
	"context"
	"errors"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// respond makes the answer of what came back. isSearchExhaustive is a proof
// by enumeration: every shard that had to answer did, every repository in
// question has an index, and no limit cut anything.
func (r *root) respond() (*SearchResponse, error) {
	if err := r.ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, fail(context.Canceled, "the search was given up by its caller")
	}
	missing := r.stats.ShardsRequired - r.stats.ShardsAnswered - r.unasked
	if r.overload != nil && r.stats.ShardsAnswered == 0 && missing > 0 {
		return nil, r.overload
	}
	if r.req.RequireComplete && missing > 0 {
		return nil, fail(ErrIncomplete, "%d of %d shards did not answer", missing, r.stats.ShardsRequired)
	}
	out := &SearchResponse{
		Stats: r.stats, Cluster: r.clusterInfo(),
		Exhaustive: missing == 0 && len(r.unindexed) == 0 && !r.cut,
	}
	out.Stats.FlushReason = r.flushReason(missing)
	out.Stats.Duration = r.n.opt.Now().Sub(r.began)
	r.fill(out, r.files)
	return out, nil
}

func (r *root) flushReason(missing int) FlushReason {
	switch {
	case r.timeout || errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return FlushTimeout
	case missing > 0:
		return FlushUnavailable
	case r.cut:
		return FlushLimit
	}
	return FlushFinal
}

func (r *root) clusterInfo() ClusterInfo {
	info := ClusterInfo{CatalogIndex: r.view.Index(), CatalogAge: r.age, NodesFailed: r.failed, Hedged: r.hedged}
	for _, t := range r.lost {
		info.ShardsMissing = append(info.ShardsMissing, t.group.Parts[0].Shard)
	}
	slices.Sort(info.ShardsMissing)
	info.ShardsMissing = info.ShardsMissing[:min(len(info.ShardsMissing), maxNamed)]
	slices.Sort(r.unindexed)
	info.ReposMissing = r.unindexed[:min(len(r.unindexed), maxNamed)]
	slices.Sort(info.NodesFailed)
	return info
}

// fill joins names and links to the files of an answer.
func (r *root) fill(out *SearchResponse, files []shard.File) {
	used := map[uint32]bool{}
	ranges := 0
	for _, f := range files {
		repo := r.view.Repo(f.Repo)
		if repo == nil {
			continue
		}
		if !used[f.Repo] {
			used[f.Repo] = true
			out.Repositories = append(out.Repositories, repositoryInfo(repo))
		}
		if r.typ == query.RepoType {
			continue
		}
		ranges += countRanges(f)
		out.Files = append(out.Files, r.n.searchFile(repo, f))
	}
	out.Stats.ActualMatches = ranges
	if r.typ != query.RepoType {
		slices.SortFunc(out.Repositories, func(a, b RepositoryInfo) int { return int(int64(a.ID) - int64(b.ID)) })
		return
	}
	r.fillRepositories(out)
}

// fillRepositories makes the repositories the answer: by name, each in one
// part only, and no more than asked for.
func (r *root) fillRepositories(out *SearchResponse) {
	list := slices.DeleteFunc(out.Repositories, func(i RepositoryInfo) bool { return r.seen[i.ID] })
	slices.SortFunc(list, func(a, b RepositoryInfo) int { return compareStrings(a.Name, b.Name) })
	if r.seen == nil {
		r.seen = map[uint32]bool{}
	}
	for _, i := range list {
		r.seen[i.ID] = true
	}
	out.Stats.Files, out.Stats.TotalMatches = len(list), len(list)
	if most := max(r.req.Matches-r.returned, 0); len(list) > most {
		list, r.cut = list[:most], true
		out.Exhaustive, out.Stats.FlushReason = false, FlushLimit
	}
	r.returned += len(list)
	out.Repositories, out.Stats.ActualMatches = list, len(list)
}

// onePerRepository keeps the first file of each repository.
func onePerRepository(files []shard.File) []shard.File {
	seen := map[uint32]bool{}
	return slices.DeleteFunc(files, func(f shard.File) bool {
		had := seen[f.Repo]
		seen[f.Repo] = true
		return had
	})
}

func (n *Node) searchFile(repo *catalog.Repo, f shard.File) SearchFile {
	rev := "HEAD"
	if len(f.Revisions) > 0 {
		rev = f.Revisions[0]
	}
	return SearchFile{
		RepoID: f.Repo, Repository: repo.Name, Path: f.Path, NameRanges: f.NameMatch, Language: f.Language,
		WebURL: webURL(n.opt.BaseURL, repo.Name, rev, "blob", f.Path), ExternalWebURL: externalURL(repo, rev, f.Path),
		Chunks: f.Chunks, Branches: f.Revisions, Content: f.Content, OID: f.OID, Score: f.Score,
	}
}

func repositoryInfo(repo *catalog.Repo) RepositoryInfo {
	name := repo.DisplayName
	if name == "" {
		name = repo.Name
	}
	return RepositoryInfo{ID: repo.ID, Name: repo.Name, DisplayName: name, WebURL: repo.WebURL, CodeHostType: repo.HostKind}
}

// countRanges is how much of the limit of matches a file takes: its ranges in
// name and content, and one where it matches without any.
func countRanges(f shard.File) int {
	n := len(f.NameMatch)
	for _, c := range f.Chunks {
		n += len(c.Ranges)
	}
	return n
}

// limitFiles keeps what fits in a number of matches, of files (0 for any) and
// of bytes, in the order given.
func limitFiles(files []shard.File, matches, most int, memory int64) (kept []shard.File, cut bool) {
	left := matches
	for i := range files {
		size := int64(len(files[i].Content)) + 512
		for _, c := range files[i].Chunks {
			size += int64(len(c.Content)) + int64(len(c.Ranges))*24
		}
		memory -= size
		if left <= 0 || memory < 0 || most > 0 && i == most {
			return files[:i], true
		}
		n := max(countRanges(files[i]), 1)
		if n > left {
			files[i] = trimFile(files[i], left)
			return files[:i+1], true
		}
		left -= n
	}
	return files, false
}

// trimFile keeps the first ranges of a file.
func trimFile(f shard.File, left int) shard.File {
	if len(f.NameMatch) >= left {
		f.NameMatch, f.Chunks = f.NameMatch[:left], nil
		return f
	}
	left -= len(f.NameMatch)
	var chunks []shard.Chunk
	for _, c := range f.Chunks {
		if left == 0 {
			break
		}
		if len(c.Ranges) > left {
			c.Ranges = c.Ranges[:left]
			if len(c.Symbols) > left {
				c.Symbols = c.Symbols[:left]
			}
		}
		left -= len(c.Ranges)
		chunks = append(chunks, c)
	}
	f.Chunks = chunks
	return f
}

// addStats sums the counters of leaves.
func addStats(to *shard.Stats, s shard.Stats) {
	to.TotalMatches += s.TotalMatches
	to.Files += s.Files
	to.FilesSkipped += s.FilesSkipped
	to.ContentBytes += s.ContentBytes
	to.IndexBytes += s.IndexBytes
	to.ShardFiles += s.ShardFiles
	to.FilesConsidered += s.FilesConsidered
	to.FilesLoaded += s.FilesLoaded
	to.ShardsScanned += s.ShardsScanned
	to.ShardsSkipped += s.ShardsSkipped
	to.ShardsFiltered += s.ShardsFiltered
	to.NgramLookups += s.NgramLookups
	to.NgramMatches += s.NgramMatches
	to.RegexpsConsidered += s.RegexpsConsidered
	to.Planning += s.Planning
	to.Searching += s.Searching
}

// streamBatch is how many shards a part of a stream comes from.
const streamBatch = 64

// stream answers in parts: the shards are asked in batches, and each batch is
// sent when it is whole. The limit of matches holds over all parts.
func (r *root) stream(send func(*SearchChunk) error) (*SearchResponse, error) {
	targets := r.targets()
	var repos []RepositoryInfo
	left := r.req.Matches
	actual := 0
	var counted shard.Stats // of repositories, where they are the answer
	for len(targets) > 0 {
		if r.ctx.Err() != nil || (left <= 0 && !r.leaf.CountAll) {
			break
		}
		batch := targets[:min(r.n.streamBatch, len(targets))]
		targets = targets[len(batch):]
		r.files = nil
		switch r.typ {
		case query.AnyType:
			r.leaf.Matches = max(left, 1)
		case query.FileType:
			r.leaf.Files = max(left, 1)
		}
		before := r.stats
		r.scatter(batch)
		part := &SearchResponse{}
		if left > 0 || r.typ == query.RepoType {
			r.fill(part, r.files)
		}
		counted.Files, counted.TotalMatches = counted.Files+part.Stats.Files, counted.TotalMatches+part.Stats.TotalMatches
		if r.typ == query.FileType {
			left -= len(part.Files)
		} else {
			left -= max(part.Stats.ActualMatches, len(part.Files))
		}
		actual += part.Stats.ActualMatches
		if len(part.Files) == 0 && len(part.Repositories) == 0 {
			continue
		}
		repos = append(repos, part.Repositories...)
		chunk := &SearchChunk{Files: part.Files, Repositories: part.Repositories, Stats: subStats(r.stats, before)}
		chunk.Stats.ActualMatches = part.Stats.ActualMatches
		if r.typ == query.RepoType {
			chunk.Stats.Files, chunk.Stats.TotalMatches = part.Stats.Files, part.Stats.TotalMatches
		}
		if err := send(chunk); err != nil {
			r.cancel()
			return nil, err
		}
	}
	r.files = nil
	if left <= 0 && len(targets) > 0 {
		r.cut, r.unasked = true, len(targets)
	}
	out, err := r.respond()
	if err != nil {
		return nil, err
	}
	out.Repositories, out.Stats.ActualMatches = repos, actual
	if r.typ == query.RepoType {
		out.Stats.Files, out.Stats.TotalMatches = counted.Files, counted.TotalMatches
	}
	return out, nil
}

// subStats is the work between two readings.
func subStats(now, before SearchStats) SearchStats {
	d := now
	d.TotalMatches -= before.TotalMatches
	d.Files -= before.Files
	d.FilesSkipped -= before.FilesSkipped
	d.ContentBytes -= before.ContentBytes
	d.IndexBytes -= before.IndexBytes
	d.ShardFiles -= before.ShardFiles
	d.FilesConsidered -= before.FilesConsidered
	d.FilesLoaded -= before.FilesLoaded
	d.ShardsScanned -= before.ShardsScanned
	d.ShardsSkipped -= before.ShardsSkipped
	d.ShardsFiltered -= before.ShardsFiltered
	d.NgramLookups -= before.NgramLookups
	d.NgramMatches -= before.NgramMatches
	d.RegexpsConsidered -= before.RegexpsConsidered
	d.Planning -= before.Planning
	d.Searching -= before.Searching
	d.Crashes -= before.Crashes
	return d
}

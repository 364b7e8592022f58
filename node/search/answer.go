package search

import (
	"context"
	"errors"
	"slices"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

// respond makes the answer of what came back.
func (r *root) respond() (*Response, error) {
	if err := r.ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, call.Fail(context.Canceled, "the search was given up by its caller")
	}
	missing := r.missing()

	// What is missing because its last holder had too much to do is there in a
	// second: better to ask again than to take a part for the answer.
	if r.overload != nil && missing > 0 {
		return nil, r.overload
	}

	if r.req.RequireComplete && missing > 0 {
		return nil, call.Fail(call.ErrIncomplete, "%d of %d shards did not answer", missing, r.stats.ShardsRequired)
	}

	out := &Response{
		Stats:    r.stats,
		Cluster:  r.clusterInfo(),
		Past:     r.pastRepos(),
		Hints:    r.hints,
		Coverage: r.coverage(),
	}
	out.Stats.UnknownRevision = r.unknownRevision()
	out.Stats.Duration = clock.Since(r.began)

	// A viewer who may not count the repositories may not count their files either.
	if r.blind {
		out.Stats.hideFiles()
	}

	r.shape.fill(r, out, r.files, r.req.Matches)
	out.Stats.FlushReason = FlushReasonOf(out.Coverage)
	return out, nil
}

// missing is how many shards had to answer and did not.
func (r *root) missing() int { return r.stats.ShardsRequired - r.stats.ShardsAnswered - r.unasked }

func (r *root) clusterInfo() ClusterInfo {
	info := ClusterInfo{
		CatalogIndex: r.seen.View.Index(),
		CatalogAge:   r.age,
		NodesFailed:  r.failed,
		Hedged:       r.hedged,
	}
	for _, t := range r.lost {
		info.ShardsMissing = append(info.ShardsMissing, t.group.Parts[0].Shard.Name(shard.KindShard))
	}

	// Which file a repository is in, and which nodes have that, depends on who
	// else is in the file: a viewer who may not see all of them is told the
	// repositories alone.
	if r.blind {
		info.ShardsMissing, info.NodesFailed = nil, nil
	}

	info.ShardsMissing = firstNamed(info.ShardsMissing)
	info.ReposMissing = firstNamed(slices.Concat(r.unindexed, r.lostRepos()))
	slices.Sort(info.NodesFailed)
	return info
}

// firstNamed is the first of some names, sorted.
func firstNamed(names []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return names[:min(len(names), maxNamed)]
}

// lostRepos names the repositories of which a shard did not answer.
func (r *root) lostRepos() (names []string) {
	for _, t := range r.lost {
		for _, p := range t.group.Parts {
			if repo := r.seen.View.Repo(p.Repo); repo != nil {
				names = append(names, repo.Name)
			}
		}
	}
	return names
}

// file joins names and links to a file of an answer.
func (r *root) file(repo *catalog.Repo, f shard.File) File {
	if commit := r.commits[f.Repo]; commit != "" {
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
		WebURL:         browse.WebURL(r.d.BaseURL, repo.Name, rev, "blob", f.Path),
		ExternalWebURL: browse.ExternalURL(repo, rev, f.Path),
		Chunks:         f.Chunks,
		Matches:        f.Matches,

		Branches: f.Revisions,
		Content:  f.Content,
		OID:      f.OID,
		Score:    f.Score,
	}
}

// hideFiles takes out what is counted by file. Files hold several repositories,
// so these counters tell of repositories that the viewer may not see.
func (s *Stats) hideFiles() {
	s.IndexBytes, s.ContentBytes, s.ShardFiles, s.FilesConsidered, s.FilesLoaded, s.FilesSkipped = 0, 0, 0, 0, 0, 0
	s.ShardsScanned, s.ShardsSkipped, s.ShardsFiltered, s.NgramLookups, s.NgramMatches, s.RegexpsConsidered = 0, 0, 0, 0, 0, 0
	s.ShardsRequired, s.ShardsAnswered, s.Crashes = 0, 0, 0
}

// since is the work between an earlier reading and this one. What is not
// counted by the shards stays as it is, but for the crashes.
func (s Stats) since(before Stats) Stats {
	s.Stats.Sub(before.Stats)
	s.Crashes -= before.Crashes
	return s
}

package search

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

// respond makes the response from all files that came back.
func (r *root) respond() (*Response, error) { return r.respondWith(r.a.files) }

// respondWith makes the response from some of the files that came back.
func (r *root) respondWith(files []shard.File) (*Response, error) {
	if err := r.ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, call.Fail(context.Canceled, "the search was given up by its caller")
	}
	missing := r.a.missing()

	// An overloaded holder can answer in a second. Let the client ask again, so that nobody takes a
	// part for the answer.
	if r.a.overload != nil && missing > 0 {
		return nil, r.a.overload
	}

	if r.q.req.RequireComplete && missing > 0 {
		return nil, call.Fail(call.ErrIncomplete, "%d of %d shards did not answer", missing, r.a.stats.ShardsRequired)
	}

	out := &Response{
		Stats:    r.a.stats,
		Cluster:  r.clusterInfo(),
		Past:     r.q.pastRepos(),
		Hints:    r.q.hints,
		Coverage: r.a.coverage(r.late()),
	}
	out.Stats.UnknownRevision = r.a.unknownRevision()
	out.Stats.Duration = clock.Since(r.began)

	// A viewer who may not count the repositories may not count their files either.
	if r.q.hideCounts {
		out.Stats.hideFiles()
	}

	r.q.shape.fill(r.a, out, files, r.q.req.Matches)
	out.Stats.FlushReason = FlushReasonOf(out.Coverage)
	return out, nil
}

// clusterInfo returns which files, nodes and repositories are missing, as far as the viewer may
// know.
func (r *root) clusterInfo() ClusterInfo {
	info := ClusterInfo{
		CatalogIndex: r.q.visible.View.Index(),
		CatalogAge:   r.q.age.Truncate(time.Millisecond),
		NodesFailed:  r.a.failed,
		Hedged:       r.a.hedged,
	}
	for _, t := range r.a.lost {
		info.ShardsMissing = append(info.ShardsMissing, t.group.Parts[0].Shard.Name(shard.KindShard))
	}

	// Other repositories in the same file decide where a repository's data is. So a viewer who may
	// not see all of them learns only which repositories are missing, not which files or nodes.
	if r.q.hideCounts {
		info.ShardsMissing, info.NodesFailed = nil, nil
	}

	info.ShardsMissing = firstNames(info.ShardsMissing)
	info.ReposMissing = firstNames(slices.Concat(r.a.unindexed, r.a.lostRepos()))
	slices.Sort(info.NodesFailed)
	return info
}

// firstNames returns the first maxNamed of some names, sorted.
func firstNames(names []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return names[:min(len(names), maxNamed)]
}

// hideFiles clears the counters of files and shards. A file holds several repositories, so these
// counters would reveal repositories that the viewer may not see.
func (s *Stats) hideFiles() {
	s.IndexBytes, s.ContentBytes, s.ShardFiles, s.FilesConsidered, s.FilesLoaded, s.FilesSkipped = 0, 0, 0, 0, 0, 0
	s.ShardsScanned, s.ShardsSkipped, s.ShardsFiltered, s.NgramLookups, s.NgramMatches, s.RegexpsConsidered = 0, 0, 0, 0, 0, 0
	s.ShardsRequired, s.ShardsAnswered, s.Crashes = 0, 0, 0
}

// since returns the work done since an earlier reading. Counters that shards do not fill stay as
// they are, except for the crashes.
func (s Stats) since(before Stats) Stats {
	s.Stats.Sub(before.Stats)
	s.Crashes -= before.Crashes
	return s
}

// late reports whether the search ran out of time.
func (r *root) late() bool {
	return r.a.timeout || errors.Is(r.ctx.Err(), context.DeadlineExceeded)
}

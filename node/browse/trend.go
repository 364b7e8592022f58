package browse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// TrendRequest asks how many matches a query has in a repository at some dates.
type TrendRequest struct {
	Ref string
	At  []time.Time // zero: the newest commit. At most 64
	Q   query.Q     // its Rev is Ref
}

// TrendResponse has a count for each date.
type TrendResponse struct {
	Counts []int
	Exact  bool

	Read  int // files read from git
	Bytes int64
}

// Trend counts the matches at some dates. It returns ErrTooLarge if too much would have to be read.
func (b *Browser) Trend(ctx context.Context, v catalog.Viewer, repo string, req TrendRequest) (*TrendResponse, error) {
	return route(ctx, b, v, repo, trendOperation, req)
}

var trendOperation = operation[TrendRequest, TrendResponse]{name: "trend", run: answerTrend, heavy: true}

// answerTrend reads the files of the commits of all dates, each content once, and searches them. The
// index of changes says which files can match.
func answerTrend(ctx context.Context, s *site, req TrendRequest) (*TrendResponse, error) {
	out := &TrendResponse{Counts: make([]int, len(req.At)), Exact: true}
	tip, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	paths := &change.Paths{All: true}
	if slices.ContainsFunc(s.repo.Revisions, func(r catalog.Revision) bool { return r.Commit == tip }) {
		if paths, err = s.paths(ctx, s.repo, req.Q); err != nil {
			return nil, fmt.Errorf("find the files of %q that can match: %w", s.repo.Name, err)
		}
	}
	if paths.None() {
		return out, nil
	}

	var commits []string // distinct
	of := make([]int, len(req.At))
	for i, at := range req.At {
		commit, err := s.commitOf(ctx, tip, at)
		if errors.Is(err, call.ErrRef) {
			of[i] = -1 // nothing was committed by then
			continue
		}
		if err != nil {
			return nil, err
		}
		if of[i] = slices.Index(commits, commit.Hash); of[i] < 0 {
			of[i] = len(commits)
			commits = append(commits, commit.Hash)
		}
	}
	counts, err := s.countAt(ctx, out, req.Q, commits, paths)
	if err != nil {
		return nil, err
	}
	for i, c := range of {
		if c >= 0 {
			out.Counts[i] = counts[c]
		}
	}
	return out, nil
}

// countAt counts the matches in each of some commits, in files at some paths. It reads what one search
// may read, and divides the commits where all together have more.
func (s *site) countAt(ctx context.Context, out *TrendResponse, q query.Q, commits []string, paths *change.Paths) ([]int, error) {
	counts := make([]int, len(commits))
	if len(commits) == 0 {
		return counts, nil
	}
	blobs, err := s.mirror.Union(ctx, commits)
	if err != nil {
		return nil, err
	}
	keep := nameFilter(q)
	blobs = slices.DeleteFunc(blobs, func(b git.Blob) bool {
		return !slices.ContainsFunc(b.Occurrences, func(o git.Occurrence) bool { return paths.Has(o.Path) && keep(o.Path) })
	})
	bytes := int64(0)
	for _, b := range blobs {
		bytes += b.Size
	}
	switch large := len(blobs) > pastFiles || bytes > pastBytes; {
	case len(blobs) == 0:
		return counts, nil
	case large && len(commits) > 1: // the small index of all would be too large
		half := len(commits) / 2
		first, err := s.countAt(ctx, out, q, commits[:half], paths)
		if err != nil {
			return nil, err
		}
		rest, err := s.countAt(ctx, out, q, commits[half:], paths)
		return append(first, rest...), err
	case large:
		return nil, call.Fail(call.ErrTooLarge, "In repository %q %d files of %d MB would have to be read from git; %d files of %d MB may be.", s.repo.Name, len(blobs), bytes>>20, pastFiles, pastBytes>>20)
	}
	out.Read, out.Bytes = out.Read+len(blobs), out.Bytes+bytes

	key := fmt.Sprintf("%d trend %s %s", s.repo.ID, strings.Join(commits, " "), q)
	small, err := s.scratch.acquireIndex(ctx, key, func(context.Context) (shard.Source, error) {
		return &pastSource{mirror: s.mirror, repo: repositoryAt(s.repo, commits), blobs: shardBlobs(blobs)}, nil
	}, s.options)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", s.repo.Name, err)
	}
	defer s.scratch.release(small)
	view, missing := small.set.Acquire(small.parts)
	defer view.Release()
	if len(missing) > 0 {
		return nil, fmt.Errorf("read %q: %d small indexes are gone", s.repo.Name, len(missing))
	}

	for i, commit := range commits {
		found, err := view.Search(ctx, shard.Request{
			Q: atCommit(q, commit), MaxMatches: 1, CountAll: true, NoChunks: true,
			Rank: func(uint32) (string, float64) { return s.repo.Name, 0 },
		})
		if err != nil {
			return nil, err
		}
		counts[i] = found.Stats.TotalMatches
		out.Exact = out.Exact && found.Stats.FilesSkipped+found.Stats.ShardsSkipped == 0 && !found.Untagged && len(found.Failed) == 0
	}
	return counts, nil
}

// repositoryAt is a repository whose revisions are some commits.
func repositoryAt(repo *catalog.Repo, commits []string) shard.Repository {
	out := shard.Repository{ID: repo.ID, Name: repo.Name}
	for i, c := range commits {
		out.Revisions = append(out.Revisions, shard.Revision{Name: c, Commit: c, Bit: uint8(i)})
	}
	return out
}

// shardBlobs returns blobs as a source of an index has them.
func shardBlobs(blobs []git.Blob) []shard.Blob {
	out := make([]shard.Blob, len(blobs))
	for i, b := range blobs {
		out[i] = shard.Blob{OID: b.OID, Size: b.Size}
		for _, o := range b.Occurrences {
			out[i].Occurrences = append(out[i].Occurrences, shard.Occurrence{Path: o.Path, Mask: o.Commits})
		}
	}
	return out
}

// atCommit returns a query with its revision replaced by a commit.
func atCommit(q query.Q, commit string) query.Q {
	q = query.Map(q, func(q query.Q) query.Q {
		if _, ok := q.(*query.Rev); ok {
			return query.Const(true)
		}
		return q
	})
	return query.Simplify(&query.And{Subs: []query.Q{&query.Rev{Pattern: commit}, q}})
}

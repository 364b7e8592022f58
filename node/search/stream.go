package search

import (
	"math"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
)

// sums adds up the parts of a stream.
type sums struct {
	left    int         // rest of the limit of matches
	actual  int         // ranges that were sent
	counted shard.Stats // by the answer itself, not by the shards
	repos   []browse.RepoInfo
}

// wholeStream is the size of a batch with all shards.
const wholeStream = math.MaxInt

// stream answers in parts: it asks the shards in batches, and sends the result of each complete
// batch. The limit of matches applies to all parts together.
func (r *root) stream(batch int, send func(*Chunk) error) (*Response, error) {
	targets := r.targets()
	sum := sums{left: r.q.req.Matches}

	// A viewer who may not see all repositories gets one part: parts would reveal which
	// repositories share a shard.
	if r.q.hideCounts {
		batch = wholeStream
	}

	for (len(targets) > 0 || r.a.needsJoin()) && r.ctx.Err() == nil && (sum.left > 0 || r.q.leaf.CountAll) {
		n := min(batch, len(targets))
		part, work := r.part(targets[:n], sum.left)
		if r.a.refused > 0 {
			return nil, changedSight()
		}
		targets = targets[n:]

		sum.add(r.q.shape, part)
		if len(part.Files) == 0 && len(part.Repositories) == 0 {
			continue
		}

		work.ActualMatches = part.Stats.ActualMatches
		r.q.shape.count(&work.Stats, part.Stats.Stats)
		if r.q.hideCounts {
			work.hideFiles()
		}
		if err := send(&Chunk{Files: part.Files, Repositories: part.Repositories, Stats: work}); err != nil {
			r.cancel()
			return nil, err
		}
	}

	// Shards after the limit are left out on purpose and do not count as missing.
	if sum.left <= 0 && len(targets) > 0 {
		r.a.cut, r.a.unasked = true, len(targets)
	}

	r.a.files = nil
	return r.total(sum)
}

// part searches some shards and returns their answer and the work that it took.
func (r *root) part(targets []*target, left int) (*Response, Stats) {
	r.a.files = nil
	leaf := r.q.leaf
	r.q.shape.limit(&leaf, left)

	before := r.a.stats
	r.scatter(targets, leaf)
	r.a.joinPast()

	out := &Response{}
	r.q.shape.fill(r.a, out, r.a.files, left)
	return out, r.a.stats.since(before)
}

// total returns the final response of a stream, without the files that were sent already.
func (r *root) total(sum sums) (*Response, error) {
	out, err := r.respond()
	if err != nil {
		return nil, err
	}
	out.Repositories, out.Stats.ActualMatches = sum.repos, sum.actual
	r.q.shape.count(&out.Stats.Stats, sum.counted)
	return out, nil
}

func (s *sums) add(shape *shape, part *Response) {
	s.left -= shape.used(part)
	s.actual += part.Stats.ActualMatches
	s.counted.Add(part.Stats.Stats)
	s.repos = append(s.repos, part.Repositories...)
}

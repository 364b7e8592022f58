package search

import (
	"cmp"
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard"
)

// keptBytes is the memory for the results of KeptByName.
const keptBytes = 4 << 20

// Searcher searches for viewers. It is safe for concurrent use.
type Searcher struct {
	d       Deps
	leaves  *leaves
	layouts layouts
	kept    *lru.Cache[string, []coverage.File] // results of KeptByName
}

// New returns a Searcher, which from now on answers the searches of other nodes. It must be called
// before the cluster runs.
func New(d Deps) *Searcher {
	d.Batch = cmp.Or(d.Batch, streamBatch)
	d.Time = cmp.Or(d.Time, toolTime)
	d.lost = &lostCalls{log: d.Log}
	s := &Searcher{
		d:      d,
		leaves: newLeaves(d),
		kept:   lru.New[string, []coverage.File](keptBytes),
	}
	leafCall.Serve(d.Cluster, s.leaves.serve)
	commitsCall.Serve(d.Cluster, s.leaves.commits)
	return s
}

// Caches returns the caches of searches on this node, besides those of the shard set. It is safe
// for concurrent use.
func (s *Searcher) Caches() []shard.CacheSize {
	return []shard.CacheSize{
		{Name: "groups of other nodes", Bytes: s.leaves.groups.cache.Size(), Most: groupBytes},
		{Name: "lists of files by name only", Bytes: s.kept.Size(), Most: keptBytes},
	}
}

// Searched returns how much time was spent searching an index file since the node started. It is
// safe for concurrent use.
func (s *Searcher) Searched(file shard.FileID) time.Duration {
	return s.leaves.heat.timeOf(file)
}

// Search runs a query over everything that the viewer may see.
func (s *Searcher) Search(ctx context.Context, v catalog.Viewer, req Request) (*Response, error) {
	out, err := s.search(ctx, v, req)
	s.d.Done(out, err)
	if err != nil || !req.Facets {
		return out, err
	}

	own := newTally()
	own.add(out.Files)
	if err := s.addFacets(ctx, v, req, out, own); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Searcher) search(ctx context.Context, v catalog.Viewer, req Request) (*Response, error) {
	r, err := s.onOneIndex(ctx, func() (*root, error) { return s.newRoot(ctx, v, req) })
	if err != nil {
		return nil, err
	}
	defer r.close()

	out, err := r.respond()
	if err != nil {
		return nil, err
	}
	if err := r.setNext(out); err != nil {
		return nil, err
	}
	return out, nil
}

// onOneIndex runs a search that begin makes. If a generation was replaced meanwhile, it runs the
// search again with the newer catalog, so that the answer comes from one index. The caller must
// close the result.
func (s *Searcher) onOneIndex(ctx context.Context, begin func() (*root, error)) (*root, error) {
	for try := 0; ; try++ {
		r, err := begin()
		if err != nil {
			return nil, err
		}

		// All calls use the one view of the root.
		r.scatter(r.targets(), r.q.leaf)
		r.a.joinPast()

		if r.a.refused > 0 {
			r.close()
			if err := s.catchUp(ctx, r.a.refused, try); err != nil {
				return nil, err
			}
			continue
		}

		// Lost shards are worth another attempt only if a newer view has other files.
		if len(r.a.lost) == 0 || try == maxTries || ctx.Err() != nil || !r.a.overtaken(s.d.Cluster.View()) {
			return r, nil
		}
		r.close()
	}
}

// catchUp waits until this node has the catalog by which another node refused the search.
func (s *Searcher) catchUp(ctx context.Context, index uint64, try int) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if try == maxTries || s.d.Cluster.Await(ctx, index) != nil {
		return changedSight()
	}
	return nil
}

// StreamSearch runs a query and sends the results in parts as they arrive, in no order. It sends
// nothing before the query is known to be valid. The returned response has the totals and no files.
// If send fails, the search stops.
func (s *Searcher) StreamSearch(ctx context.Context, v catalog.Viewer, req Request, send func(*Chunk) error) (*Response, error) {
	if req.Pages {
		return nil, call.Fail(call.ErrInvalid, "the parts of a stream come in no order, and have no pages")
	}
	r, err := s.newRoot(ctx, v, req)
	if err != nil {
		return nil, err
	}
	defer r.close()

	// Results from git arrive in one part with the rest.
	batch := s.d.Batch
	if len(r.q.past) > 0 {
		batch = wholeStream
	}

	// The final response has no files, so count them as they are sent.
	own, sent := newTally(), send
	if req.Facets {
		sent = func(part *Chunk) error {
			own.add(part.Files)
			return send(part)
		}
	}

	out, err := r.stream(batch, sent)
	s.d.Done(out, err)
	if err == nil && req.Facets {
		err = s.addFacets(ctx, v, req, out, own)
	}
	return out, err
}

// addFacets adds the counts of files to an answer. own counts the files of the answer itself. If
// the answer does not have every file, a second search counts them.
func (s *Searcher) addFacets(ctx context.Context, v catalog.Viewer, req Request, out *Response, own *tally) error {
	if out.Coverage.Exhaustive() && out.Stats.Files == own.files {
		out.Facets = own.facets(true)
		return nil
	}

	all, err := s.Search(ctx, v, req.Counting())
	if err != nil {
		return err
	}

	// A second search with little time left may count fewer files than the answer has.
	out.Facets = all.CountFiles()
	if len(all.Files) < own.files {
		out.Facets = own.facets(false)
	}
	return nil
}

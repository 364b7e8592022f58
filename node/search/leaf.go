package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// leafRequest is a search of some shards of one node.
type leafRequest struct {
	Pass     account.Pass // on whose behalf
	Q        boxed
	Groups   []leafGroup
	Matches  int
	Files    int // at most; 0 for no limit of its own
	PerFile  int // matches of one file at most; 0 for no limit of its own
	Shards   int // that the whole search asks
	Context  int
	Whole    bool
	CountAll bool
	NoChunks bool
	Around   bool // tell what definitions the matches stand in
	Reach    bool // count the files that the query could reach and that are kept by name only
	Heavy    bool
	Within   time.Duration // until the answer is of no more use

	After *shard.Cursor // what stands before it is left out

	FilesOnly  bool // find out which files match, but no places in them
	OnePerRepo bool // and of each repository any one of them

	progress *shard.Progress // of a search of this node; it does not travel
}

// verdict is what came of one shard.
type verdict uint8

// The verdicts.
const (
	verdictNone    verdict = iota // no answer
	verdictDone                   // searched; only a limit can have cut it
	verdictMissing                // the node does not have the files
	verdictDamaged                // a file fails its checksum
	verdictLate                   // the deadline passed before all of it was searched
)

// leafResponse is the answer: a verdict for each group of the request, and
// what the groups that are done have.
type leafResponse struct {
	Verdicts []verdict
	Without  []uint32 // repositories that were left out of groups that are done: a file of theirs is missing
	Hidden   []uint32 // repositories of the request that the viewer may not see; where there are any, nothing was searched
	Index    uint64   // of the catalog of the leaf, where by that some are hidden or files are missing
	Files    []shard.File
	Stats    shard.Stats
	Cut      bool
	Untagged shard.UntaggedFiles // that the query reaches
	Wait     time.Duration

	More, Full bool // as shard.Result has them
}

// boxed carries a query through gob, which needs a struct around an interface.
type boxed struct{ Q query.Q }

// registerQueries names the atoms of a query that a leaf can see, which travel behind an
// interface.
func registerQueries() {
	call.Register(
		&query.And{}, &query.Or{}, &query.Not{}, query.Const(false),
		&query.Text{}, &query.Lang{}, &query.Rev{}, &query.Repos{},
	)
}

// leafCall asks another node to search shards that it has. One that does not know a part
// of the query leaves its shards to the others.
var leafCall = call.To[leafRequest, leafResponse]("search").Whole()

// leaves searches shards, here or on another node.
type leaves struct {
	d      Deps
	groups *groups
	heat   heat
}

func newLeaves(d Deps) *leaves {
	registerQueries()
	return &leaves{d: d, groups: newGroups()}
}

// ask searches shards of a node, this one or another. With a deadline the leaf
// is given a little less, so that what it has by then arrives.
func (l *leaves) ask(ctx context.Context, node string, req *leafRequest) (*leafResponse, error) {
	if left, ok := clock.Left(ctx); ok {
		early := min(left/10, 300*time.Millisecond)
		req.Within = max(left-early, time.Millisecond)
	}

	if node == l.d.Cluster.Self() {
		return l.search(ctx, req)
	}

	// Another node: the groups travel in their short form.
	for i := range req.Groups {
		req.Groups[i].pack()
	}
	res, err := leafCall.Ask(ctx, l.d.Cluster, node, req)
	if err != nil {
		return nil, err
	}

	if len(res.Verdicts) != len(req.Groups) {
		return nil, fmt.Errorf("%d verdicts for %d shards", len(res.Verdicts), len(req.Groups))
	}
	return res, nil
}

// serve answers the root of another node.
func (l *leaves) serve(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	if err := l.groups.unpack(l.d.Cluster.View(), req); err != nil {
		return nil, err
	}
	return l.search(ctx, req)
}

// search is searchHere, and logs it if it took long.
func (l *leaves) search(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	began := clock.Now()
	out, err := l.searchHere(ctx, req)
	more := []any{"shards", len(req.Groups)}
	if out != nil {
		more = append(more, "waited", out.Wait)
	}
	l.d.Slow.Done(ctx, "search of shards", began, more...)
	return out, err
}

// searchHere searches shards of this node. A repository of which a part is missing
// is not searched at all, so that no answer mixes generations.
func (l *leaves) searchHere(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	if req.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Within)
		defer cancel()
	}

	leave, wait, err := l.enter(ctx, req.Heavy)
	if err != nil {
		return nil, err
	}
	defer leave()

	// Nothing is opened before the viewer is known to be allowed to see it.
	out := &leafResponse{Verdicts: make([]verdict, len(req.Groups)), Wait: wait}
	if err := l.gate(ctx, req, out); err != nil || len(out.Hidden) > 0 {
		return out, err
	}

	view := l.acquire(req, out)
	defer view.Release()
	began := clock.Now()
	res, err := view.Search(ctx, req.search())
	l.heat.add(req.Groups, clock.Since(began))

	if err != nil {
		return nil, err
	}

	// What was not searched is counted only where somebody shows it.
	out.Files, out.Stats, out.Cut = res.Files, res.Stats, res.Cut
	out.More, out.Full = res.More, res.Full
	if req.Reach && ctx.Err() == nil {
		out.Stats.FilesNotSearched, err = view.CountUnsearched(ctx, req.Q.Q)
		if err != nil {
			return nil, err
		}
	}

	if res.Untagged {
		if out.Untagged, err = view.Untagged(ctx, req.Q.Q); err != nil {
			return nil, err
		}
	}

	out.judge(req, res, ctx.Err() != nil)
	return out, nil
}

// longAfter is how long a search may take before it makes room for another heavy one.
const longAfter = 250 * time.Millisecond

// enter waits until a search may begin. Cheap searches never wait behind expensive
// ones, nor those, for more than a moment, behind the longest.
func (l *leaves) enter(ctx context.Context, heavy bool) (leave func(), wait time.Duration, err error) {
	if heavy {
		return l.d.Heavy.EnterLong(ctx, longAfter, l.d.Long)
	}
	return l.d.Light.Enter(ctx)
}

// search is what a request asks of the shards.
func (req *leafRequest) search() shard.Request {
	return shard.Request{
		Q:          req.Q.Q,
		MaxMatches: req.Matches,
		MaxFiles:   req.Files,
		MaxPerFile: req.PerFile,
		Shards:     req.Shards,
		CountAll:   req.CountAll,

		ContextLines: req.Context,
		Whole:        req.Whole,
		NoChunks:     req.NoChunks,
		FilesOnly:    req.FilesOnly,
		OnePerRepo:   req.OnePerRepo,
		Around:       req.Around,

		After: req.After,

		Rank:        ranker(req),
		MemoryLimit: memoryLimit,
		Progress:    req.progress,
	}
}

// gate looks whether the viewer may see, by the catalog of this node, all that
// is to be searched. If not, all of it is refused, and the root told why: what
// may be seen has changed since it looked, or it did not look.
func (l *leaves) gate(ctx context.Context, req *leafRequest, out *leafResponse) error {
	mayAll := func(r *account.Repos) bool { return hasAll(r.Set, req.Groups) }

	// Again waits for a newer catalog where that may settle it.
	seen, err := l.d.Gate.Again(ctx, req.Pass, mayAll)
	if err != nil || mayAll(seen) {
		return err
	}

	hidden := roaring.New()
	for i := range req.Groups {
		for _, p := range req.Groups[i].group.Parts {
			if !seen.Set.Contains(p.Repo) {
				hidden.Add(p.Repo)
			}
		}
	}

	out.Hidden, out.Index = hidden.ToArray(), seen.View.Index()
	return nil
}

// hasAll reports whether a set has all repositories of some groups.
func hasAll(set *roaring.Bitmap, groups []leafGroup) bool {
	return !slices.ContainsFunc(groups, func(g leafGroup) bool {
		repos := g.group.Repos()
		return set.AndCardinality(repos) != repos.GetCardinality()
	})
}

// judge gives the shards that were searched their verdicts. late: the time was
// over when the search ended.
func (out *leafResponse) judge(req *leafRequest, res *shard.Result, late bool) {
	failed := map[shard.FileID]bool{}
	for _, p := range res.Failed {
		failed[p.Shard] = true
	}

	for i := range req.Groups {
		// A verdict that is there was given before the search, as that the file is not here.
		switch {
		case out.Verdicts[i] != verdictNone:
		case failed[req.Groups[i].group.Parts[0].Shard]:
			out.Verdicts[i] = verdictDamaged
		case late && (res.Cut || res.Untagged):
			out.Verdicts[i] = verdictLate
		default:
			out.Verdicts[i] = verdictDone
		}
	}
}

// acquire takes the parts of the repositories that are here completely, and
// says which are not.
func (l *leaves) acquire(req *leafRequest, out *leafResponse) *shard.View {
	incomplete := map[uint32]bool{}
	for {
		groups, without := req.complete(out, incomplete)
		view, missing := l.d.Set.AcquireGroups(groups)
		if len(missing) == 0 {
			out.Without = slices.Sorted(maps.Keys(without))
			return view
		}

		// What is missing is known now: ask again without the repositories that it is of.
		out.Index = l.d.Cluster.View().Index()
		view.Release()
		for _, p := range missing {
			incomplete[p.Repo] = true
		}
	}
}

// complete is the groups of a request without the repositories of which this
// node lacks a file. A group with nothing left gets its verdict; without is the
// repositories that were taken out of the others.
func (req *leafRequest) complete(out *leafResponse, incomplete map[uint32]bool) (groups []*shard.Group, without map[uint32]bool) {
	without = map[uint32]bool{}
	for i := range req.Groups {
		g := req.Groups[i].group

		// Nearly always all is here: then the group stays the one that it was, and
		// what is known of it stays of use.
		if len(incomplete) == 0 {
			groups = append(groups, g)
			continue
		}

		have := g.Within(func(repo uint32) bool { return !incomplete[repo] })
		if have == nil {
			out.Verdicts[i] = verdictMissing
			continue
		}
		if len(have.Parts) == len(g.Parts) {
			groups = append(groups, g)
			continue
		}

		for _, p := range g.Parts {
			if incomplete[p.Repo] {
				without[p.Repo] = true
			}
		}
		groups = append(groups, have)
	}
	return groups, without
}

// ranker names repositories for the order of an answer.
func ranker(req *leafRequest) func(repo uint32) (string, float64) {
	if len(req.Groups) == 0 {
		return nil
	}
	// All groups of a request have the same ranks.
	ranks := req.Groups[0].rank // the same for all

	return func(repo uint32) (string, float64) {
		r := ranks[repo]
		return r.name, float64(r.recency) / 255
	}
}

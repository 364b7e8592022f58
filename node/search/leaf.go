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

// leafRequest asks one node to search some of its shards.
type leafRequest struct {
	Pass     account.Pass // identifies the viewer
	Q        queryBox
	Groups   []leafGroup
	Matches  int
	Files    int // limit of files; 0 means none
	PerFile  int // limit of matches in one file; 0 means none
	Shards   int // number of shards of the whole search
	Context  int
	Whole    bool
	CountAll bool
	NoChunks bool
	Around   bool // return the definitions that enclose the matches
	Lexed    bool // return what is open at the start of each chunk
	Reach    bool // count the files kept by name only that the query could match
	Heavy    bool
	Within   time.Duration // time until nobody waits for the answer

	After *shard.Cursor // hides the files before it

	Words      []shard.Word // rank files by them, as in shard.Request
	Shown      int          // with Words: files with chunks
	CountWords bool         // count the files of each word

	FilesOnly  bool // find out which files match, but no places in them
	OnePerRepo bool // with FilesOnly: any one file of each repository is enough

	progress *shard.Progress // of a search on this node; it does not travel
}

// verdict is the outcome of searching one shard.
type verdict uint8

// The verdicts.
const (
	verdictNone    verdict = iota // no answer
	verdictDone                   // searched; only a limit can have cut it
	verdictMissing                // the node does not have the files
	verdictDamaged                // a file fails its checksum
	verdictLate                   // the deadline passed before all of it was searched
)

// leafResponse has a verdict for each group of the request, and the files of the groups that were
// searched.
type leafResponse struct {
	Verdicts []verdict
	Without  []uint32 // repositories left out of searched groups, because one of their files is missing
	Hidden   []uint32 // repositories of the request that the viewer may not see; if there are any, nothing was searched
	Index    uint64   // catalog index of the leaf, if some repositories are hidden or files missing
	Files    []shard.File
	Stats    shard.Stats
	Cut      bool
	Untagged shard.UntaggedFiles // files with unknown symbols that the query could match
	Wait     time.Duration

	More, Full bool // as in shard.Result

	WordFiles []int // with CountWords: as in shard.Result
}

// queryBox carries a query through gob, which needs a struct around an interface.
type queryBox struct{ Q query.Q }

// registerQueries registers with gob the types of a query that leaves receive. They travel as an
// interface.
func registerQueries() {
	call.Register(
		&query.And{}, &query.Or{}, &query.Not{}, query.Const(false),
		&query.Text{}, &query.Lang{}, &query.Rev{}, &query.Repos{},
		&query.Dates{}, &query.Merge{},
	)
}

// leafCall asks another node to search its shards. A node that does not know a part of the query
// refuses, and other nodes are asked.
var leafCall = call.To[leafRequest, leafResponse]("search").Whole()

// leaves searches shards, on this node or on another.
type leaves struct {
	d      Deps
	groups *groups
	heat   heat
}

func newLeaves(d Deps) *leaves {
	registerQueries()
	return &leaves{d: d, groups: newGroups()}
}

// ask asks a node, this one or another, to search shards. If ctx has a deadline, the leaf gets a
// little less time, so that its answer arrives before.
func (l *leaves) ask(ctx context.Context, node string, req *leafRequest) (*leafResponse, error) {
	if left, ok := clock.Left(ctx); ok {
		early := min(left/10, 300*time.Millisecond)
		req.Within = max(left-early, time.Millisecond)
	}

	if node == l.d.Cluster.Self() {
		return l.search(ctx, req)
	}

	// On the way to another node the groups have their short form.
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

// serve handles the call of another node's root.
func (l *leaves) serve(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	if err := l.groups.unpack(l.d.Cluster.View(), req); err != nil {
		return nil, err
	}
	return l.search(ctx, req)
}

// search does searchHere, and logs it if it took long.
func (l *leaves) search(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	began := clock.Now()
	ctx, span := l.d.Tracer.Start(ctx, "search shards")
	span.Number("shards", len(req.Groups))
	var out *leafResponse
	var err error
	// A panic in the goroutine of a call would end the node. So it fails the call, and another copy is asked.
	if trouble := call.Caught(func() { out, err = l.searchHere(ctx, req) }); trouble != "" {
		out, err = nil, fmt.Errorf("a mistake of the program: %s", trouble)
	}
	if err == nil {
		span.Number("files considered", out.Stats.FilesConsidered)
		span.Number("files loaded", out.Stats.FilesLoaded)
		l.d.Tracer.Past(ctx, "verify", later(began, clock.Now().Add(-out.Stats.Searching)))
	}
	span.End(err)
	more := []any{"shards", len(req.Groups)}
	if out != nil {
		more = append(more, "waited", out.Wait)
	}
	l.d.Slow.Done(ctx, "search of shards", began, more...)
	return out, err
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// searchHere searches shards of this node. If a file of a repository is missing, it does not search
// the repository at all, so that no answer mixes generations.
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

	// Check what the viewer may see before any file is opened.
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

	// Count unsearched files only if the caller shows the number.
	out.Files, out.Stats, out.Cut = res.Files, res.Stats, res.Cut
	out.More, out.Full, out.WordFiles = res.More, res.Full, res.WordFiles
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

// enter waits until a search may begin. Cheap searches never wait behind expensive ones. Expensive
// searches wait only a moment behind the longest ones.
func (l *leaves) enter(ctx context.Context, heavy bool) (leave func(), wait time.Duration, err error) {
	if heavy {
		return l.d.Heavy.EnterLong(ctx, longAfter, l.d.Long)
	}
	return l.d.Light.Enter(ctx)
}

// search returns the request for package shard.
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
		Lexed:        req.Lexed,
		Words:        req.Words,
		Shown:        req.Shown,
		CountWords:   req.CountWords,

		After: req.After,

		Rank:        ranker(req),
		MemoryLimit: memoryLimit,
		Progress:    req.progress,
	}
}

// gate checks with this node's catalog that the viewer may see every repository of the request. If
// not, it refuses the whole request and tells the root why: what the viewer may see has changed
// since the root checked, or the root did not check.
func (l *leaves) gate(ctx context.Context, req *leafRequest, out *leafResponse) error {
	mayAll := func(r *account.Repos) bool { return hasAll(r.Set, req.Groups) }

	// Again waits for a newer catalog if that may decide it.
	visible, err := l.d.Gate.Again(ctx, req.Pass, mayAll)
	if err != nil || mayAll(visible) {
		return err
	}

	hidden := roaring.New()
	for i := range req.Groups {
		for _, p := range req.Groups[i].group.Parts {
			if !visible.Set.Contains(p.Repo) {
				hidden.Add(p.Repo)
			}
		}
	}

	out.Hidden, out.Index = hidden.ToArray(), visible.View.Index()
	return nil
}

// hasAll reports whether a set has all repositories of some groups.
func hasAll(set *roaring.Bitmap, groups []leafGroup) bool {
	return !slices.ContainsFunc(groups, func(g leafGroup) bool {
		repos := g.group.Repos()
		return set.AndCardinality(repos) != repos.GetCardinality()
	})
}

// judge sets the verdicts of the shards that were searched. late reports that time was over when
// the search ended.
func (out *leafResponse) judge(req *leafRequest, res *shard.Result, late bool) {
	failed := map[shard.FileID]bool{}
	for _, p := range res.Failed {
		failed[p.Shard] = true
	}

	for i := range req.Groups {
		// A verdict that is set already says that files are missing here.
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

// acquire opens the parts of the repositories whose files are all here, and records which are not.
func (l *leaves) acquire(req *leafRequest, out *leafResponse) *shard.View {
	incomplete := map[uint32]bool{}
	for {
		groups, without := req.complete(out, incomplete)
		view, missing := l.d.Set.AcquireGroups(groups)
		if len(missing) == 0 {
			out.Without = slices.Sorted(maps.Keys(without))
			return view
		}

		// Try again without the repositories of the missing files.
		out.Index = l.d.Cluster.View().Index()
		view.Release()
		for _, p := range missing {
			incomplete[p.Repo] = true
		}
	}
}

// complete returns the groups of a request without the incomplete repositories. A group without any
// other repository gets its verdict. without are the repositories removed from the other groups.
func (req *leafRequest) complete(out *leafResponse, incomplete map[uint32]bool) (groups []*shard.Group, without map[uint32]bool) {
	without = map[uint32]bool{}
	for i := range req.Groups {
		g := req.Groups[i].group

		// Nearly always nothing is missing. Then the group stays the same object, so that caches
		// know it.
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

// ranker returns the function that gives the name and recency of a repository.
func ranker(req *leafRequest) func(repo uint32) (string, float64) {
	if len(req.Groups) == 0 {
		return nil
	}
	ranks := req.Groups[0].rank // the same for all groups of a request

	return func(repo uint32) (string, float64) {
		r := ranks[repo]
		return r.name, float64(r.recency) / 255
	}
}

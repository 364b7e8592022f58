package change

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
)

// A search goes from the newest commits to the oldest, and ends once it has found all that the answer
// shows. It searches commits in pieces, which are sorted by their newest commit: clocks go wrong, so the
// number of a commit says little.
//
//	LogReader of each log --> the piece with the newest commit --> its hits
//	ends when the last commit to show is newer than all pieces that are left

// The sizes of a search. Tests have smaller ones.
var (
	pieceSize     = 64   // commits of a piece, which follow each other by number
	countedBlocks = 256  // that are decoded in all before what is only counted is given up
	facetedBlocks = 4096 // the same, where facets are asked for
)

const readersAtOnce = 4 // logs that are searched beside each other

// piece is some commits of a file of changes, from a number up to another.
type piece struct {
	from, to       uint32
	newest, oldest int64 // times of commits
}

// derived makes the pieces of a file, the newest last, and the set of its files whose lines are unknown.
func (x *index) derived() ([]piece, *roaring.Bitmap) {
	x.derive.Do(func() {
		for from := 0; from < x.m.Commits; from += pieceSize {
			p := piece{from: uint32(from), to: uint32(min(from+pieceSize, x.m.Commits)), newest: math.MinInt64, oldest: math.MaxInt64}
			for c := p.from; c < p.to; c++ {
				at := int64(x.times.At(int(2*c + 1)))
				p.newest, p.oldest = max(p.newest, at), min(p.oldest, at)
			}
			x.pieces = append(x.pieces, p)
		}
		slices.SortStableFunc(x.pieces, func(a, b piece) int { return cmp.Compare(a.newest, b.newest) })
		x.named = roaring.New()
		for f := 0; x.m.Named > 0 && f < x.m.Files; f++ {
			if x.files.At(5*f+4)&(flagBinary|flagHuge) != 0 {
				x.named.Add(uint32(f))
			}
		}
	})
	return x.pieces, x.named
}

// reachable returns the commits of a file that a revision reaches.
func (s *generation) reachable(i int) *roaring.Bitmap {
	s.derive.Do(func() {
		for _, x := range s.files {
			s.live = append(s.live, s.withMask(x, math.MaxUint64))
		}
	})
	return s.live[i]
}

// LogReader searches one log, a piece after the other. It must be closed.
type LogReader struct {
	Revisions []Tip // that are searched
	Whole     bool  // all of their commits are: none is beyond the bound, and git could read each

	req         LogSearch
	q           query.Q
	patterns    map[*query.Text]*pattern
	shown, said []*pattern // of lines, and of messages
	since       int64      // no commit before it can match, and none after until
	until       int64

	files []fileReader
	named int   // of files, whose binary and huge ones are counted
	size  int   // how many pieces are searched next
	found []hit // the first so far
	out   *LogMatches
	err   error
	log   *generation // whole, for what its pieces do not tell; nil else
	close func()
}

// fileReader searches a file of changes.
type fileReader struct {
	e       *evaluation
	commits *roaring.Bitmap // that are searched
	whole   bool            // they are all
	pieces  []piece         // that are left, the next one last
}

// Reader begins a search. [ReadLogs] does it, and [LogReader.Result] returns its result.
func (l *Log) Reader(req LogSearch) (*LogReader, error) {
	s, err := l.acquire()
	if err != nil {
		return nil, err
	}
	var r *LogReader
	err = file.Guard(func() (err error) {
		if r, err = newReader(s, s.m.Revisions, nil, req); err != nil {
			return err
		}
		if r.Whole = r.Whole && !s.m.Cut; s.m.Cut {
			r.out.Before = s.boundary()
		}
		r.out.After = s.newest()
		return nil
	})
	if err != nil {
		s.release()
		return nil, err
	}
	r.log, r.close = s, s.release
	return r, nil
}

// newReader makes a reader of a generation. only is the commits of each file that are searched; nil for
// those that a revision reaches.
func newReader(s *generation, revisions []Tip, only []*roaring.Bitmap, req LogSearch) (*LogReader, error) {
	q, patterns, err := prepare(req)
	if err != nil {
		return nil, err
	}
	r := &LogReader{
		Revisions: revisions, Whole: true, req: req, q: q, patterns: patterns, size: 1,
		shown: positive(q, patterns, nil, query.Added, query.Removed, query.Content), said: positive(q, patterns, nil, query.Message),
		out: &LogMatches{Revisions: revisions, Authors: map[string]int{}, Months: map[string]int{}},
	}
	r.since, r.until = datesOf(q)
	r.add(s, only)
	return r, nil
}

// datesOf returns the times between which everything lies that a query finds.
func datesOf(q query.Q) (since, until int64) {
	since, until = math.MinInt64, math.MaxInt64
	subs := []query.Q{q}
	if and, ok := q.(*query.And); ok {
		subs = and.Subs
	}
	for _, s := range subs {
		if d, ok := s.(*query.Dates); ok {
			if !d.Since.IsZero() {
				since = max(since, d.Since.Unix())
			}
			if !d.Until.IsZero() {
				until = min(until, d.Until.Unix())
			}
		}
	}
	return since, until
}

// add adds the commits of a generation to the search.
func (r *LogReader) add(s *generation, only []*roaring.Bitmap) {
	for i, x := range s.files {
		var f fileReader
		if only != nil {
			f.commits = only[i]
		} else {
			f.commits = s.reachable(i)
		}
		r.Whole = r.Whole && len(x.m.Unread) == 0
		if f.commits.IsEmpty() || r.q == query.Const(false) {
			continue
		}
		f.pieces, _ = x.derived()
		if r.since != math.MinInt64 || r.until != math.MaxInt64 || r.req.After != (Place{}) {
			f.pieces = slices.DeleteFunc(slices.Clone(f.pieces), func(p piece) bool { return p.newest < r.since || p.oldest > r.until })
			slices.SortStableFunc(f.pieces, func(a, b piece) int { return cmp.Compare(r.rank(&a), r.rank(&b)) })
		}
		f.whole = f.commits.GetCardinality() == uint64(x.m.Commits)
		f.e = newEvaluation(x, s, r.req.Diff, r.patterns)
		r.files = append(r.files, f)
	}
}

// counting is the rank of pieces that the answer before this one had. They are searched last, and only
// to be counted.
const counting = math.MinInt64

// rank orders pieces: the highest is searched first.
func (r *LogReader) rank(p *piece) int64 {
	if r.req.After != (Place{}) && r.req.After.Score == 0 && p.oldest > r.req.After.Time {
		return counting
	}
	return p.newest
}

// next returns the file with the piece that is searched next, and its rank; nil if none is left.
func (r *LogReader) next() (next *fileReader, rank int64) {
	for i := range r.files {
		f := &r.files[i]
		if n := len(f.pieces); n > 0 {
			if at := r.rank(&f.pieces[n-1]); next == nil || at > rank {
				next, rank = f, at
			}
		}
	}
	return next, rank
}

// Close ends the use of the log.
func (r *LogReader) Close() {
	if r.close != nil {
		r.close()
	}
}

// spent returns how many blocks were decoded.
func (r *LogReader) spent() (n int) {
	for i := range r.files {
		n += r.files[i].e.spent()
	}
	return n
}

// read searches the next pieces, and returns how many.
func (r *LogReader) read(ctx context.Context) (hits []hit, pieces int, err error) {
	// Each file has a part of them, which is searched in one go.
	taken := make([]int, len(r.files))
	if len(r.files) == 1 {
		taken[0] = min(r.size, len(r.files[0].pieces))
		pieces = taken[0]
		r.files[0].pieces = r.files[0].pieces[:len(r.files[0].pieces)-pieces]
	}
	for ; pieces < r.size; pieces++ {
		f, _ := r.next()
		if f == nil {
			break
		}
		f.pieces = f.pieces[:len(f.pieces)-1]
		for i := range r.files {
			if f == &r.files[i] {
				taken[i]++
			}
		}
	}
	err = file.Guard(func() error {
		for i, n := range taken {
			f := &r.files[i]
			part := slices.Clone(f.pieces[len(f.pieces) : len(f.pieces)+n]) // all searches share them
			found, err := r.readFile(ctx, f, part)
			if err != nil {
				return err
			}
			hits = append(hits, found...)
		}
		return nil
	})
	r.found = first(append(r.found, hits...), r.req.Limit)
	return hits, pieces, err
}

// readFile searches pieces of a file.
func (r *LogReader) readFile(ctx context.Context, f *fileReader, pieces []piece) ([]hit, error) {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	within := value{roaring.New(), r.req.Diff && f.whole}
	for i := 0; i < len(pieces); i++ {
		from := pieces[i].from
		for i+1 < len(pieces) && pieces[i+1].from == pieces[i].to {
			i++
		}
		f.e.addRange(within, from, pieces[i].to)
	}
	if !f.whole {
		within.set.And(f.commits)
	}
	if within.set.IsEmpty() {
		return nil, nil
	}

	f.e.ctx = ctx
	defer f.e.rest()
	hits, err := f.e.run(r.q, f.e.as(within, r.req.Diff))
	if err == nil && r.req.Best {
		err = f.e.score(hits, slices.Concat(r.shown, r.said))
	}
	if err != nil {
		return nil, err
	}
	f.e.count(hits, r.req.Facets, r.out)
	hits = r.out.behind(hits, r.req.After)
	for i := range hits {
		hits[i].file = f
	}
	return hits, nil
}

// countNamed counts the binary and huge files that could match, whose lines are unknown.
func (r *LogReader) countNamed(ctx context.Context) error {
	if len(r.shown) == 0 {
		return nil
	}
	q := loosened(r.q)
	return file.Guard(func() error {
		for ; r.named < len(r.files); r.named++ {
			i := r.named
			e := r.files[i].e
			_, named := e.x.derived()
			if named.IsEmpty() {
				continue
			}
			e.ctx = ctx
			set, c := roaring.New(), uint32(0)
			for it := named.Iterator(); it.HasNext(); {
				f := it.Next()
				if c = e.x.commitFrom(f, c); r.files[i].commits.Contains(c) {
					set.Add(f)
				}
			}
			v, err := e.eval(q, e.as(value{set, true}, r.req.Diff))
			if err != nil {
				return err
			}
			set.And(e.as(v, true).set)
			r.out.Named += int(set.GetCardinality())
		}
		return nil
	})
}

// Result returns what was found, with the details of what is told. It fails if the search was not ended.
func (r *LogReader) Result(ctx context.Context) (*LogMatches, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.out.Whole = r.Whole
	err := file.Guard(func() (err error) {
		if r.req.Moves && r.log != nil {
			c := &pathCollector{ctx: ctx, s: r.log}
			r.out.Moved, err = c.crosses(textsOf(r.req.Q, query.Added, query.Removed), textsOf(r.req.Q, query.Name))
			if err != nil {
				return err
			}
		}
		defer func() {
			for i := range r.files {
				r.files[i].e.rest()
			}
		}()
		for i := range r.found {
			h := &r.found[i]
			h.file.e.ctx = ctx
			c, err := h.file.e.tell(*h, r.shown, r.said, h.s.files)
			if err != nil {
				return err
			}
			c.Parent = cmp.Or(c.Parent, h.s.firstParents[c.ID])
			r.out.Commits = append(r.out.Commits, *c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.out, nil
}

// Search finds the matches of a query in one log.
func (l *Log) Search(ctx context.Context, req LogSearch) (*LogMatches, error) {
	r, err := l.Reader(req)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ReadLogs(ctx, []*LogReader{r}, req)
	return r.Result(ctx)
}

// ReadLogs searches some logs as if they were one. Then each reader has what is told of its log: the
// first of all logs, as far as scores and times decide. A reader that could not end returns the error
// from its Result.
func ReadLogs(ctx context.Context, readers []*LogReader, req LogSearch) {
	g := &together{ctx: ctx, req: req, budget: countedBlocks}
	if req.Facets {
		g.budget = facetedBlocks
	}
	for _, r := range readers {
		if r.err = r.countNamed(ctx); r.err == nil {
			g.left = append(g.left, ranked{r: r})
		}
	}
	g.left = slices.DeleteFunc(g.left, func(e ranked) bool { f, _ := e.r.next(); return f == nil })
	for i := range g.left {
		_, g.left[i].rank = g.left[i].r.next()
	}
	heap.Init(&g.left)
	var group sync.WaitGroup
	for range min(readersAtOnce, runtime.GOMAXPROCS(0), len(g.left)) - 1 {
		group.Go(g.work)
	}
	g.work()
	group.Wait()
	trim(readers, req.Limit)
}

// trim takes from the readers what is not among the first of all.
func trim(readers []*LogReader, limit int) {
	if len(readers) == 1 {
		return
	}
	var all []hit
	for _, r := range readers {
		all = append(all, r.found...)
	}
	kept := first(all, limit)
	if len(kept) == len(all) || len(kept) == 0 {
		return
	}
	last := kept[len(kept)-1].place
	for _, r := range readers {
		r.found = slices.DeleteFunc(r.found, func(h hit) bool { return h.place.behind(last) })
	}
}

// together is a search of some logs by some goroutines.
type together struct {
	ctx    context.Context
	req    LogSearch
	budget int // blocks that are decoded in all, before what is only counted is given up

	mu    sync.Mutex // guards the fields below
	left  rankedHeap
	first []dated // commits that are told if no newer ones are found, the newest first
	items int     // of them
	spent int     // blocks
}

// dated is a commit, or some files of it.
type dated struct {
	time  int64
	items int
}

// work searches the log with the newest commit that is left, until there is none or the rest does not
// matter.
func (g *together) work() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.left) > 0 {
		r, rank := g.left[0].r, g.left[0].rank
		told := g.told(rank)
		if told && (g.spent >= g.budget || g.ctx.Err() != nil) {
			for i := range g.left {
				g.left[i].r.out.More = true
			}
			g.left = nil
			return
		}
		heap.Pop(&g.left)
		g.mu.Unlock()
		before := r.spent()
		hits, pieces, err := r.read(g.ctx)
		spent := r.spent() - before
		g.mu.Lock()

		g.spent += spent
		g.add(hits)
		if err != nil {
			r.err = err
			continue
		}
		r.size = g.sizeAfter(pieces, spent, len(hits), told)
		if f, rank := r.next(); f != nil {
			heap.Push(&g.left, ranked{r, rank})
		}
	}
}

// told reports whether nothing of a rank is told any more, as far as it is known.
func (g *together) told(rank int64) bool {
	switch {
	case g.req.All || g.req.Best:
		return false
	case rank == counting || g.req.Limit <= 0:
		return true
	}
	return g.items >= g.req.Limit && rank < g.first[len(g.first)-1].time
}

// sizeAfter returns how many pieces are searched next after some were. It grows while they cost little
// and have few hits.
func (g *together) sizeAfter(pieces, spent, hits int, told bool) int {
	size := 2 * pieces
	switch {
	case g.req.All || g.req.Best:
	case told && spent > 0:
		size = min(size, pieces*max(0, g.budget-g.spent)/spent)
	case !told && hits > 0:
		size = min(size, pieces*max(0, g.req.Limit-g.items)/hits)
	}
	return max(1, size)
}

// add adds what was found to what is told.
func (g *together) add(hits []hit) {
	if g.req.All || g.req.Best || len(hits) == 0 {
		return
	}
	for i := range hits {
		g.first = append(g.first, dated{hits[i].place.Time, hits[i].items()})
	}
	slices.SortFunc(g.first, func(a, b dated) int { return cmp.Compare(b.time, a.time) })
	g.items = 0
	for i := range g.first {
		if g.items >= g.req.Limit {
			g.first = g.first[:i]
			break
		}
		g.items += g.first[i].items
	}
}

// ranked is a reader with the rank of its next piece.
type ranked struct {
	r    *LogReader
	rank int64
}

// rankedHeap has the reader with the newest commit first.
type rankedHeap []ranked

func (h rankedHeap) Len() int           { return len(h) }
func (h rankedHeap) Less(i, j int) bool { return h[i].rank > h[j].rank }
func (h rankedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *rankedHeap) Push(x any)        { *h = append(*h, x.(ranked)) }
func (h *rankedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

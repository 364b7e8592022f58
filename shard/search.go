package shard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/match"
)

// Search answers r from the parts of the view. The context's end stops it
// soon: a deadline gives what was found so far with Cut, a cancellation gives
// the context's error. A damaged file is quarantined and its parts are listed
// in Result.Failed.
//
// A search goes in two rounds. The first decides which documents match and
// keeps a hit of some 40 bytes for each file that does; the second renders
// the files of the hits that rank first. All cores work on each shard: its
// candidates are cut into pieces, and any goroutine takes the next piece. Hits
// are put together in the order of the pieces, so the answer does not depend
// on which goroutine was faster.
func (v *View) Search(ctx context.Context, r Request) (*Result, error) {
	start := clock.Now()
	if r.MaxMatches <= 0 {
		r.MaxMatches = defaultMaxMatches
	}
	if r.MemoryLimit <= 0 {
		r.MemoryLimit = defaultMemoryLimit
	}

	p, err := newPlan(r.Q, &v.set.known)
	if err != nil {
		return nil, err
	}
	p.untagged = r.untagged

	// An expression can take long over a single document.
	stop := context.AfterFunc(ctx, p.stop)
	defer stop()

	s := &search{v: v, r: r, p: p, gate: v.set.gate}

	// A run for each shard file: they are bound and decided apart.
	for _, m := range v.members {
		s.runs = append(s.runs, &run{m: m})
	}

	s.planning = clock.Since(start)

	// From here on the end of ctx also cuts matchers short, so what they say is
	// no longer to be trusted.
	defer context.AfterFunc(ctx, s.stop)()

	if err := s.first(ctx, start); err != nil {
		return nil, err
	}

	res, err := s.render(ctx)
	s.recycle(s.evaluator(), s.runs...)
	if err != nil {
		return nil, err
	}
	res.Stats.Searching = apart(clock.Since(start), s.planning)
	return res, nil
}

// apart is what is left of a span of time beside a part of it. Parts are summed
// over goroutines: together they may be longer than the whole.
func apart(whole, part time.Duration) time.Duration { return max(0, whole-part) }

const (
	defaultMaxMatches  = 1000
	defaultMemoryLimit = 256 << 20
)

const (
	// cacheCandidates: an exhaustive search with more units to read from a shard
	// passes the cache by.
	cacheCandidates = 5 << 10
	// cacheUnits: of a search that may stop early and has more than
	// cacheCandidates, so many units go through the cache.
	cacheUnits = 4 * pieceUnits
)

// search is one request at work.
type search struct {
	v    *View
	r    Request
	p    *plan
	gate *gate

	stopped atomic.Bool // the matchers were cut short: what they say is wrong

	mu       sync.Mutex // guards the fields below
	runs     []*run     // by member
	next     int        // index of the run to bind next
	ready    []*run     // bound runs with pieces that nobody has taken
	busy     int        // goroutines at work, which may still add to ready
	spent    time.Duration
	planning time.Duration
	stats    Stats
	err      error
	cut      bool
}

// run is a search in one shard. At any time
//
//	done <= next <= len(pieces)   and   limit <= len(pieces)
//
// where pieces[:done] are decided, pieces[:next] are taken and pieces[:limit]
// count. limit falls when an early stop leaves out the pieces after it, and to
// 0 for a damaged file.
type run struct {
	m      *member
	b      *bound
	pieces []piece
	had    []atomic.Bool // by repository: a file of it is found, where one is enough
	next   int           // the piece to take next
	done   int           // pieces from the first on that are decided
	sum    int           // matches in pieces[:done]
	limit  int           // pieces that count
	failed bool
}

// piece is a run of candidates that one goroutine decides at a time.
type piece struct {
	docs    []uint32
	units   int // posting units of the documents of this piece and of all before it
	hits    []hit
	matches int // weights of the hits, together
	ended   bool
}

// The size of a piece, in posting units: enough work to be worth handing out,
// little enough that a light search waits at most a few milliseconds for the
// end of a heavy one's piece. Where a search may stop early the first piece is
// small, since its documents may be all that is wanted, and each piece is twice
// the one before.
const (
	pieceUnits = 512
	pieceAll   = 64 // where all matches are counted
	pieceFirst = 16
	pieceDocs  = 256 // documents in a piece at most
)

// A search that need not count all matches stops when it has enough to choose
// from by rank. Over all shards that is stopFactor times what is shown, and at
// least stopLeast; each shard gives its share of that, but at least stopShare
// times what is shown, since the other shards may have none. Where matches are
// rare among the candidates a better choice is not worth reading everything: the
// number halves after each stopUnits units, down to what is shown.
const (
	stopFactor = 4
	stopShare  = 2
	stopLeast  = 250
	stopUnits  = 12 * pieceUnits
)

// enough is how many matches end the search of a shard after so many units, where
// so many are shown. For 10 matches shown and one shard: 250 at first, 125 after
// 6,144 units, 62 after 12,288, and so on down to 10.
func (s *search) enough(shown, units int) int {
	choice := max(shown*stopShare, max(shown*stopFactor, stopLeast)/max(s.r.Shards, 1))

	return max(shown, choice>>(units/stopUnits))
}

// stop cuts short the matchers that are at work in a long text.
func (s *search) stop() {
	s.stopped.Store(true)
	for _, p := range s.p.patterns {
		p.m.Stop()
	}
}

// first does the first round in nine tenths of the time that is left: the
// second round needs some to show what was found.
func (s *search) first(ctx context.Context, now time.Time) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, now.Add(deadline.Sub(now)*9/10))
		defer cancel()
	}

	return s.work(ctx)
}

// work does the first round: this goroutine and as many helpers as there are
// free cores.
func (s *search) work(ctx context.Context) error {
	if err := s.gate.enter(ctx, light); err != nil {
		return s.ended(err)
	}

	// The loop starts helpers, which may start more; wg waits for all of them.
	var wg sync.WaitGroup
	s.busy = 1
	s.loop(ctx, &wg)
	wg.Wait()

	err := s.err
	s.err = nil // the second round begins without it

	return s.ended(err)
}

// ended makes a deadline a cut answer, as Search promises, and passes other
// errors on.
func (s *search) ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		s.cut = true
		return nil
	}
	return err
}

// loop takes tasks until there are none. It begins with a slot of the gate and
// gives it up at the end.
func (s *search) loop(ctx context.Context, wg *sync.WaitGroup) {
	e := s.evaluator()
	lane, inside := light, true // inside: we hold a slot
	told := e.t.bytes
	for {
		task := s.take(ctx, e, wg)
		if task == nil {
			break
		}

		// A task runs guarded: a fault in a mapped file is an error, not a crash.
		began := clock.Now()
		err := file.Guard(task)
		s.r.Progress.Add(0, 0, 0, int64(e.t.bytes-told))
		told = e.t.bytes

		s.mu.Lock()
		s.spent += clock.Since(began)
		if s.spent > heavyAfter {
			lane = heavy
		}
		if err != nil && s.err == nil {
			s.err = err
		}
		s.mu.Unlock()

		// Between tasks a waiting search of a lighter lane goes first.
		if err := s.gate.yield(ctx, lane); err != nil {
			s.fail(err)
			inside = false
			break
		}
	}

	// Sum up what this goroutine read.
	s.mu.Lock()
	s.busy--
	s.stats.ContentBytes += e.t.bytes
	s.stats.IndexBytes += e.t.index
	s.stats.FilesLoaded += e.t.loads
	s.stats.RegexpsConsidered += e.regexp
	s.mu.Unlock()

	// Buffers are kept for the next search.
	s.recycle(e)
	if inside {
		s.gate.leave()
	}
}

// fail remembers the first error; it ends the search.
func (s *search) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// take returns the next task, nil when there is none: a piece of a bound run
// if one is worth deciding, else to bind the next run. While more is waiting
// than this goroutine can do, it starts another.
func (s *search) take(ctx context.Context, e *evaluator, wg *sync.WaitGroup) func() error {
	// The end of ctx ends the search here, between two tasks.
	if err := ctx.Err(); err != nil {
		s.fail(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil
	}

	// Pieces first: what they find may make the rest of the runs not worth binding.
	if r := s.wanted(); r != nil {
		i := r.next
		r.next++
		if s.next < len(s.runs) || s.wanted() != nil {
			s.help(ctx, wg)
		}
		return func() error { return s.decide(ctx, e, r, i) }
	}

	if s.next < len(s.runs) {
		r := s.runs[s.next]
		s.next++
		if s.next < len(s.runs) {
			s.help(ctx, wg)
		}
		return func() error { return s.bind(e, r) }
	}
	return nil
}

// wanted returns the first run with a piece that should be decided now, nil for
// none. s.mu is held.
func (s *search) wanted() *run {
	for i := 0; i < len(s.ready); {
		r := s.ready[i]
		switch {
		case r.next >= r.limit:
			s.ready = slices.Delete(s.ready, i, i+1)
		case s.worth(r):
			return r
		default:
			i++
		}
	}
	return nil
}

// worth reports whether the next piece of a run is likely to count. A search
// that may stop early does not begin a piece that those at work will probably
// make superfluous. It expects as many matches a unit in the pieces begun as in
// those done: with k units done and b units begun,
//
//	expected(b) = sum * b / k   and the piece is wanted while   expected(b) < enough(b)
//
// A goroutine that is refused ends; whoever finishes a piece asks again.
func (s *search) worth(r *run) bool {
	if s.r.CountAll || r.next == r.done {
		return true
	}
	if r.done == 0 {
		return false // nothing is known yet: wait for the first piece
	}

	k, b := r.pieces[r.done-1].units, r.pieces[r.next-1].units
	return float64(r.sum)*float64(b) < float64(s.enough(s.r.MaxMatches, b))*float64(k)
}

// help starts another goroutine if a core is free. s.mu is held.
func (s *search) help(ctx context.Context, wg *sync.WaitGroup) {
	if !s.gate.tryEnter() {
		return
	}

	s.busy++
	wg.Add(1)

	go func() {
		defer wg.Done()
		s.loop(ctx, wg)
	}()
}

// bind finds the candidates of a run and cuts them into pieces.
func (s *search) bind(e *evaluator, r *run) error {
	began := clock.Now()
	err := file.Guard(func() error {
		if err := r.m.ready(); err != nil {
			return err
		}

		b, err := bind(s.p, r.m, &e.scratch)
		r.b = b
		return err
	})
	if err != nil {
		return s.lose(r, err)
	}

	// A search that reads much of a shard would only throw the blocks of other
	// searches out of the cache.
	if !s.r.CountAll || r.b.candidates <= cacheCandidates && len(r.b.docs) <= cacheCandidates {
		r.b.cache = s.v.set.cache
	}

	// All of it is looked at where everything is counted: the order saves nothing.
	if !s.r.CountAll {
		r.b.namedFirst()
	}

	if s.r.OnePerRepo {
		r.had = make([]atomic.Bool, len(r.m.repos))
	}

	r.cut(s.r.CountAll)
	s.r.Progress.Add(int64(len(r.b.docs)), 0, 0, 0)

	// Counters are shared by all runs.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planning += clock.Since(began)
	s.stats.ShardFiles += r.m.sh.m.documents
	s.stats.NgramLookups += r.b.work.Lookups
	s.stats.IndexBytes += r.b.work.Bytes
	s.stats.NgramMatches += r.b.candidates
	s.stats.FilesConsidered += len(r.b.docs)

	r.limit = len(r.pieces)

	if r.limit == 0 {
		s.stats.ShardsFiltered++
		return nil
	}

	s.stats.ShardsScanned++
	s.ready = append(s.ready, r)
	return nil
}

// lose returns up the run of a damaged file and puts the file into quarantine;
// any other error ends the search.
func (s *search) lose(r *run, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}

	// The file leaves the set first, so that no later search gets it.
	s.v.set.quarantine(r.m.culprit(err), err)

	s.mu.Lock()
	defer s.mu.Unlock()

	// Nothing more of the run is taken; its hits so far do not count.
	r.failed = true
	r.limit = 0

	return nil
}

// cut makes the pieces. Where it cuts depends on the candidates alone, never on
// the number of cores. With all false, pieces have about 16, 32, 64 ... 512 units:
//
//	documents of 10, 3, 5, 20, 15 units  ->  {10 3 5} {20 15}
func (r *run) cut(all bool) {
	size, most := pieceFirst, pieceUnits
	if all {
		size, most = pieceAll, pieceAll
	}

	docs := r.b.docs
	start := 0  // the first document of the present piece
	units := 0  // of all documents up to here
	before := 0 // of the pieces that are complete
	for i, d := range docs {
		units += int(r.b.s.docUnit.At(int(d)+1) - r.b.s.docUnit.At(int(d)))

		// The last piece is what is left, however small.
		full := units-before >= size || i-start+1 >= pieceDocs
		if full || i == len(docs)-1 {
			r.pieces = append(r.pieces, piece{docs: docs[start : i+1], units: units})
			start, before, size = i+1, units, min(2*size, most)
		}
	}
}

// decide decides the documents of the i-th piece of a run.
func (s *search) decide(ctx context.Context, e *evaluator, r *run, i int) error {
	pc := &r.pieces[i]
	for k, d := range pc.docs {
		if k&15 == 15 { // often enough to stop soon, seldom enough to cost nothing
			if err := ctx.Err(); err != nil {
				return err
			}
		}

		e.moveTo(r.b, int(d))

		// So far into a large result the cache would only suffer.
		if pc.units >= cacheUnits && r.b.candidates > cacheCandidates {
			e.t.cache = nil
		}

		have := len(pc.hits)
		err := s.collect(ctx, e, r, pc)

		// A matcher that was cut short may have overlooked matches of this
		// document: drop its hits.
		if s.stopped.Load() {
			pc.hits = pc.hits[:have]
			return ctx.Err()
		}

		if err != nil {
			if errors.Is(err, ErrDamaged) {
				return s.lose(r, err)
			}
			return err
		}
	}

	s.r.Progress.Add(0, int64(len(pc.docs)), int64(pc.matches), 0)

	s.mu.Lock()
	defer s.mu.Unlock()
	pc.ended = true

	// Count the pieces that are done without a gap, and stop early where they
	// are enough: pieces after them do not count, even if they are decided.
	for r.done < len(r.pieces) && r.pieces[r.done].ended {
		r.sum += r.pieces[r.done].matches
		r.done++

		last := r.pieces[r.done-1].units
		if !s.r.CountAll && r.sum >= s.enough(s.r.MaxMatches, last) && r.done < r.limit {
			r.limit = r.done
		}
	}
	return nil
}

// collect decides the occurrences of the present document and adds a hit to the
// piece for each that satisfies the query.
func (s *search) collect(ctx context.Context, e *evaluator, r *run, pc *piece) error {
	sh := r.b.s
	for o := int(sh.docOccur.At(e.doc)); o < int(sh.docOccur.At(e.doc+1)); o++ {
		// Not of this view, or of no revision that is alive.
		number := sh.occRepo.At(o)
		repo := r.m.repos[number]
		if repo == nil || r.had != nil && r.had[number].Load() {
			continue
		}
		mask := repo.mask(sh, o)
		if mask == 0 {
			continue
		}

		mask, err := e.holds(s.p.root, o, mask)
		if err != nil {
			return err
		}
		if mask == 0 {
			continue
		}

		// All matches, so that they can be counted and scored.
		var spans, names []match.Span
		if !s.r.FilesOnly {
			if spans, err = e.spans(o, mask); err != nil {
				return err
			}
			names = e.nameSpans(o)
		}
		if err := ctx.Err(); err != nil {
			return err // a stopped pattern may have overlooked something
		}

		// A hit is small: its text is rendered only if it is shown.
		h := hit{run: r, doc: uint32(e.doc), occ: uint32(o), mask: mask, content: int32(len(spans)), names: int32(len(names))}
		h.score = float32(s.score(e, r, o, spans))
		pc.hits = append(pc.hits, h)
		pc.matches += s.weight(h)
		if r.had != nil {
			r.had[number].Store(true)
		}
	}
	return nil
}

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

// Search answers r from the parts of the view. It stops soon after ctx ends: a deadline gives what
// was found so far with Cut, a cancellation gives the error of ctx. A damaged file is quarantined,
// and its parts are listed in Result.Failed.
//
// A search has two rounds. The first decides which documents match, and keeps a hit of some 40
// bytes for each matching file. The second renders the files of the best hits. All cores work on
// each shard: its candidates are cut into pieces, and any goroutine takes the next piece. Hits are
// joined in the order of the pieces, so the answer does not depend on which goroutine was faster.
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

	// An expression can take long in a single document.
	stop := context.AfterFunc(ctx, p.stop)
	defer stop()

	s := &search{v: v, r: r, p: p, gate: v.set.gate}

	// Each shard file has a run of its own.
	for _, m := range v.members {
		s.runs = append(s.runs, &run{m: m})
	}

	s.planning = clock.Since(start)

	// From here on the end of ctx also stops the matchers. A stopped matcher returns wrong results.
	defer context.AfterFunc(ctx, s.stop)()

	if err := s.firstRound(ctx, start); err != nil {
		return nil, err
	}

	res, err := s.render(ctx)
	s.recycle(s.evaluator(), s.runs...)
	if err != nil {
		return nil, err
	}
	res.Stats.Searching = remainder(clock.Since(start), s.planning)
	return res, nil
}

// remainder returns the rest of a duration beside a part of it. Parts are summed over goroutines, so a
// part may be longer than the whole.
func remainder(whole, part time.Duration) time.Duration { return max(0, whole-part) }

const (
	defaultMaxMatches  = 1000
	defaultMemoryLimit = 256 << 20
)

const (
	// cacheCandidates is how many units an exhaustive search may read from a shard through the
	// cache. A larger one bypasses it.
	cacheCandidates = 5 << 10
	// cacheUnits is how many units of a search go through the cache if the search may stop early
	// and has more than cacheCandidates.
	cacheUnits = 4 * pieceUnits
)

// search is one running request.
type search struct {
	v    *View
	r    Request
	p    *plan
	gate *gate

	stopped atomic.Bool // matchers were stopped: what they say is wrong

	mu       sync.Mutex // guards the fields below
	runs     []*run     // by member
	next     int        // index of the run to bind next
	ready    []*run     // bound runs with pieces that nobody has taken yet
	busy     int        // goroutines at work, which may still add to ready
	spent    time.Duration
	planning time.Duration
	stats    Stats
	err      error
	cut      bool
}

// run is the work of a search in one shard. At any time
//
//	done <= next <= len(pieces)   and   limit <= len(pieces)
//
// where pieces[:done] are decided, pieces[:next] are taken and pieces[:limit] count. limit becomes
// less when an early stop leaves out the pieces after it, and 0 for a damaged file.
type run struct {
	m         *member
	b         *bound
	pieces    []piece
	repoFound []atomic.Bool // by repository, with OnePerRepo: one of its files is found
	next      int           // index of the next piece to take
	done      int           // number of pieces decided, from the first on without a gap
	sum       int           // matches in pieces[:done]
	limit     int           // number of pieces that count
	failed    bool
}

// piece is a run of candidates that one goroutine decides at once.
type piece struct {
	docs    []uint32
	units   int // posting units of the documents in this piece and all before it
	hits    []hit
	matches int // sum of the weights of the hits
	ended   bool
}

// The size of a piece, in posting units. It is enough work to be worth handing out. It is so little
// that a light search waits at most a few milliseconds for a heavy one's piece to end. If a search
// may stop early, the first piece is small, because its documents may be enough, and each piece is
// twice the one before.
const (
	pieceUnits = 512
	pieceAll   = 64 // if all matches are counted
	pieceFirst = 16
	pieceDocs  = 256 // most documents in a piece
)

// A search that need not count all matches stops when it has enough to choose from by rank. Over
// all shards, enough is stopFactor times the shown number, at least stopLeast. Each shard
// contributes its share, but at least stopShare times the shown number, because the other shards
// may have none. If matches are rare, a better choice is not worth reading everything: the number
// halves after each stopUnits units, down to the shown number.
const (
	stopFactor = 4
	stopShare  = 2
	stopLeast  = 250
	stopUnits  = 12 * pieceUnits
)

// enough returns how many matches end the search of a shard after that many units. For 10 matches
// shown and one shard it is 250 at first, 125 after 6,144 units, 62 after 12,288, and so on down to
// 10.
func (s *search) enough(shown, units int) int {
	choice := max(shown*stopShare, max(shown*stopFactor, stopLeast)/max(s.r.Shards, 1))

	return max(shown, choice>>(units/stopUnits))
}

// stop makes matchers that are at work in a long text give up.
func (s *search) stop() {
	s.stopped.Store(true)
	for _, p := range s.p.patterns {
		p.m.Stop()
	}
}

// firstRound runs the first round in nine tenths of the time left: the second round needs the rest to
// show what was found.
func (s *search) firstRound(ctx context.Context, now time.Time) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, now.Add(deadline.Sub(now)*9/10))
		defer cancel()
	}

	return s.work(ctx)
}

// work runs the first round on this goroutine and on as many helpers as there are free cores.
func (s *search) work(ctx context.Context) error {
	if err := s.gate.enter(ctx, light); err != nil {
		return s.ended(err)
	}

	// The loop starts helpers, which may start more. Wait for all of them.
	var wg sync.WaitGroup
	s.busy = 1
	s.loop(ctx, &wg)
	wg.Wait()

	err := s.err
	s.err = nil // the second round begins without an error

	return s.ended(err)
}

// ended turns the error of a deadline into a cut answer, as Search promises. It returns other
// errors.
func (s *search) ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		s.cut = true
		return nil
	}
	return err
}

// loop runs tasks until there are none. It starts with a slot of the gate and gives it up at the
// end.
func (s *search) loop(ctx context.Context, wg *sync.WaitGroup) {
	e := s.evaluator()
	lane, inside := light, true // inside: we hold a slot
	reported := e.t.bytes
	for {
		task := s.take(ctx, e, wg)
		if task == nil {
			break
		}

		// Guard turns a fault in a mapped file into an error.
		began := clock.Now()
		err := file.Guard(task)
		s.r.Progress.Add(0, 0, 0, int64(e.t.bytes-reported))
		reported = e.t.bytes

		s.mu.Lock()
		s.spent += clock.Since(began)
		if s.spent > heavyAfter {
			lane = heavy
		}
		if err != nil && s.err == nil {
			s.err = err
		}
		s.mu.Unlock()

		// Between tasks, let a waiting search of a lighter lane go first.
		if err := s.gate.yield(ctx, lane); err != nil {
			s.fail(err)
			inside = false
			break
		}
	}

	// Add what this goroutine read.
	s.mu.Lock()
	s.busy--
	s.stats.ContentBytes += e.t.bytes
	s.stats.IndexBytes += e.t.index
	s.stats.FilesLoaded += e.t.loads
	s.stats.RegexpsConsidered += e.regexp
	s.mu.Unlock()

	// Keep the buffers for the next search.
	s.recycle(e)
	if inside {
		s.gate.leave()
	}
}

// fail stores the first error, which ends the search.
func (s *search) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// take returns the next task, or nil if there is none. The task either evaluates a piece of a run
// whose bounds are known, or computes the bounds of the next run. If more tasks are waiting, take
// starts another goroutine.
func (s *search) take(ctx context.Context, e *evaluator, wg *sync.WaitGroup) func() error {
	// If ctx has ended, the search ends here, between two tasks.
	if err := ctx.Err(); err != nil {
		s.fail(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil
	}

	// Pieces come first: what they find may make binding the other runs unnecessary.
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

// wanted returns the first run with a piece that should be decided now; nil if none. The caller
// must hold s.mu.
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

// worth reports whether the next piece of a run is likely to count. A search that may stop early
// does not start a piece if those at work will probably find enough. It expects as many matches per
// unit in the started pieces as in the finished ones: with k units finished and b units started,
//
//	expected(b) = sum * b / k   and the piece is wanted while   expected(b) < enough(b)
//
// A goroutine without a piece ends. Whoever finishes a piece asks again.
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

// help starts another goroutine if a core is free. The caller must hold s.mu.
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
		return s.dropRun(r, err)
	}

	// A search that reads much of a shard would evict the blocks of other searches.
	if !s.r.CountAll || r.b.candidates <= cacheCandidates && len(r.b.docs) <= cacheCandidates {
		r.b.cache = s.v.set.cache
	}

	// A search that counts everything reads all documents anyway: their order does not matter.
	if !s.r.CountAll {
		r.b.namedFirst()
	}

	if s.r.OnePerRepo {
		r.repoFound = make([]atomic.Bool, len(r.m.repos))
	}

	r.cut(s.r.CountAll)
	s.r.Progress.Add(int64(len(r.b.docs)), 0, 0, 0)

	// All runs share these counters.
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

// dropRun gives up the run of a damaged file and quarantines the file. It returns any other error,
// which ends the search.
func (s *search) dropRun(r *run, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}

	// Remove the file from the set first, so that no later search gets it.
	s.v.set.quarantine(r.m.culprit(err), err)

	s.mu.Lock()
	defer s.mu.Unlock()

	// Take no more pieces of the run. Its hits so far do not count.
	r.failed = true
	r.limit = 0

	return nil
}

// cut makes the pieces. It cuts by the candidates alone, never by the number of cores. With all
// false, pieces have about 16, 32, 64 ... 512 units:
//
//	documents of 10, 3, 5, 20, 15 units  ->  {10 3 5} {20 15}
func (r *run) cut(all bool) {
	size, most := pieceFirst, pieceUnits
	if all {
		size, most = pieceAll, pieceAll
	}

	docs := r.b.docs
	start := 0  // first document of the present piece
	units := 0  // units of all documents so far
	before := 0 // units of the complete pieces
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

		// Deep in a large result, the cache would only lose other blocks.
		if pc.units >= cacheUnits && r.b.candidates > cacheCandidates {
			e.t.cache = nil
		}

		have := len(pc.hits)
		err := s.collect(ctx, e, r, pc)

		// A stopped matcher may have missed matches of this document: drop its hits.
		if s.stopped.Load() {
			pc.hits = pc.hits[:have]
			return ctx.Err()
		}

		if err != nil {
			if errors.Is(err, ErrDamaged) {
				return s.dropRun(r, err)
			}
			return err
		}
	}

	s.r.Progress.Add(0, int64(len(pc.docs)), int64(pc.matches), 0)

	s.mu.Lock()
	defer s.mu.Unlock()
	pc.ended = true

	// Count the pieces that are decided without a gap, and stop early if they have enough. Pieces
	// after them do not count, even if they are decided.
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

// collect decides the occurrences of the present document and adds a hit to the piece for each that
// satisfies the query.
func (s *search) collect(ctx context.Context, e *evaluator, r *run, pc *piece) error {
	sh := r.b.s
	for o := int(sh.docOccur.At(e.doc)); o < int(sh.docOccur.At(e.doc+1)); o++ {
		// Skip an occurrence of another view, or one that no live revision has.
		number := sh.occRepo.At(o)
		repo := r.m.repos[number]
		if repo == nil || r.repoFound != nil && r.repoFound[number].Load() {
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

		// Find all matches, so that they can be counted and scored.
		var spans, names []match.Span
		if !s.r.FilesOnly {
			if spans, err = e.spans(o, mask); err != nil {
				return err
			}
			names = e.nameSpans(o)
		}
		if err := ctx.Err(); err != nil {
			return err // a stopped pattern may have missed matches
		}

		// A hit is small. Its text is rendered only if it is shown.
		h := hit{run: r, doc: uint32(e.doc), occ: uint32(o), mask: mask, content: int32(len(spans)), names: int32(len(names))}
		h.score = float32(s.score(e, r, o, spans))
		pc.hits = append(pc.hits, h)
		pc.matches += s.weight(h)
		if r.repoFound != nil {
			r.repoFound[number].Store(true)
		}
	}
	return nil
}

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
	// A ranking estimates the score of every file.
	r.CountAll = r.CountAll || len(r.Words) > 0
	if r.MemoryLimit <= 0 {
		r.MemoryLimit = defaultMemoryLimit
	}

	p, err := newPlan(r.Q, r.Words, &v.set.known)
	if err != nil {
		return nil, err
	}
	p.untagged = r.untagged

	s := &search{v: v, r: r, p: p, gate: v.set.gate}
	for _, m := range v.members {
		s.runs = append(s.runs, &run{m: m})
	}

	s.planning = clock.Since(start)

	// The end of ctx stops the matchers, because an expression can take long in a single document.
	defer context.AfterFunc(ctx, s.stop)()

	if err := s.firstRound(ctx, start); err != nil {
		return nil, err
	}

	res, err := s.render(ctx)
	s.reuseBuffers(s.newEvaluator(), s.runs...)
	if err != nil {
		return nil, err
	}
	res.Stats.Searching = remainder(clock.Since(start), s.planning)
	return res, nil
}

// remainder returns whole without part, but at least 0: part is summed over goroutines, so it may
// be longer than whole.
func remainder(whole, part time.Duration) time.Duration { return max(0, whole-part) }

const (
	defaultMaxMatches  = 1000
	defaultMemoryLimit = 256 << 20
)

const (
	// cacheCandidates is how many candidate units an exhaustive search may have in a shard to use
	// the block cache.
	cacheCandidates = 5 << 10
	// cacheUnits is how many units a search that may stop early reads through the block cache, if
	// it has more than cacheCandidates.
	cacheUnits = 4 * pieceUnits
)

// search is one running request.
type search struct {
	v    *View
	r    Request
	p    *plan
	gate *gate

	stopped atomic.Bool // matchers were stopped, so their results are wrong

	mu       sync.Mutex    // guards the fields below
	runs     []*run        // by member
	next     int           // index of the run to bind next
	ready    []*run        // bound runs with pieces that no goroutine has taken yet
	busy     int           // number of goroutines at work
	spent    time.Duration // time of all goroutines together
	planning time.Duration
	stats    Stats
	err      error // the first error
	cut      bool  // the deadline has ended the search early
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
	sum       int           // number of matches in pieces[:done]
	limit     int           // number of pieces that count
	failed    bool
}

// piece is a run of candidates that one goroutine decides at once.
type piece struct {
	docs    []uint32
	units   int // posting units of the documents in this piece and all before it
	hits    []hit
	matches int   // sum of the weights of the hits
	ended   bool  // a goroutine has decided it
	words   []int // with Request.CountWords: files by word
}

// The size of a piece, in posting units. A piece takes at most a few milliseconds, because a light
// search may have to wait for the end of a heavy one's piece. If a search may stop early, the first
// piece is small, because its documents may be enough, and each piece is twice as large as the one
// before.
const (
	pieceUnits = 512 // the largest piece, if the search may stop early
	pieceAll   = 64  // every piece, if all matches are counted
	pieceFirst = 16  // the first piece, if the search may stop early
	pieceDocs  = 256 // greatest number of documents in a piece
)

// A search that need not count all matches stops when it has enough to choose from by rank. Over
// all shards, enough is stopFactor times the number shown, at least stopLeast. Each shard
// contributes its share, but at least stopShare times the number shown, because the other shards
// may have none. If matches are rare, the search must not read everything: the number halves after
// each stopUnits units, down to the number shown.
const (
	stopFactor = 4
	stopShare  = 2
	stopLeast  = 250
	stopUnits  = 12 * pieceUnits
)

// enoughMatches returns with how many matches the search of a shard stops after it has read units
// units. For 10 matches shown and one shard it is 250 at first, 125 after 6,144 units, 62 after
// 12,288, and so on down to 10.
func (s *search) enoughMatches(shown, units int) int {
	choice := max(shown*stopShare, max(shown*stopFactor, stopLeast)/max(s.r.Shards, 1))
	return max(shown, choice>>(units/stopUnits))
}

// stop makes the matchers return early, with wrong results. It sets s.stopped before: whoever finds it unset
// has right results.
func (s *search) stop() {
	s.stopped.Store(true)
	for _, p := range s.p.patterns {
		p.m.Stop()
	}
}

// firstRound runs the first round. It may use nine tenths of the time until the deadline of ctx, so
// that the second round can render the hits. start is when the search started.
func (s *search) firstRound(ctx context.Context, start time.Time) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, start.Add(deadline.Sub(start)*9/10))
		defer cancel()
	}

	return s.runFirstRound(ctx)
}

// runFirstRound runs the first round on this goroutine, and on others while cores are free.
func (s *search) runFirstRound(ctx context.Context) error {
	if err := s.gate.enter(ctx, light); err != nil {
		return s.cutAtDeadline(err)
	}

	var wg sync.WaitGroup // of the goroutines that startHelper starts
	s.busy = 1
	s.runTasks(ctx, &wg)
	wg.Wait()

	err := s.err
	s.err = nil // the second round begins without an error
	return s.cutAtDeadline(err)
}

// cutAtDeadline returns an error of the search. For that of a deadline it sets s.cut and returns
// nil: Search returns what was found so far.
func (s *search) cutAtDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		s.cut = true
		return nil
	}
	return err
}

// runTasks runs tasks until there are none, and adds what it read to s.stats. The caller has a slot
// of the gate, which runTasks gives back.
func (s *search) runTasks(ctx context.Context, wg *sync.WaitGroup) {
	e := s.newEvaluator()
	lane, hasSlot := light, true
	reported := e.t.bytes
	for {
		task := s.nextTask(ctx, e, wg)
		if task == nil {
			break
		}

		start := clock.Now()
		err := task()
		s.r.Progress.Add(0, 0, 0, int64(e.t.bytes-reported))
		reported = e.t.bytes

		s.mu.Lock()
		s.spent += clock.Since(start)
		if s.spent > heavyAfter {
			lane = heavy
		}
		if err != nil && s.err == nil {
			s.err = err
		}
		s.mu.Unlock()

		if err := s.gate.yield(ctx, lane); err != nil {
			s.fail(err)
			hasSlot = false
			break
		}
	}

	s.mu.Lock()
	s.busy--
	s.stats.ContentBytes += e.t.bytes
	s.stats.IndexBytes += e.t.index
	s.stats.FilesLoaded += e.t.loads
	s.stats.RegexpsConsidered += e.regexp
	s.mu.Unlock()

	s.reuseBuffers(e)
	if hasSlot {
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

// nextTask returns the next task for the goroutine with evaluator e, or nil if there is none. A
// task either decides a piece of a bound run, or binds the next run. If there are more tasks,
// nextTask starts another goroutine.
func (s *search) nextTask(ctx context.Context, e *evaluator, wg *sync.WaitGroup) func() error {
	if err := ctx.Err(); err != nil {
		s.fail(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil
	}

	// Decide pieces before binding further runs, because the pieces may have enough matches.
	if r := s.nextPieceRun(); r != nil {
		i := r.next
		r.next++
		if s.next < len(s.runs) || s.nextPieceRun() != nil {
			s.startHelper(ctx, wg)
		}
		return func() error {
			return s.dropRun(r, file.Guard(func() error { return s.decidePiece(ctx, e, r, i) }))
		}
	}

	if s.next < len(s.runs) {
		r := s.runs[s.next]
		s.next++
		if s.next < len(s.runs) {
			s.startHelper(ctx, wg)
		}
		return func() error { return s.bind(e, r) }
	}
	return nil
}

// nextPieceRun returns the first run with a piece that should be decided now; nil if none. The
// caller must hold s.mu.
func (s *search) nextPieceRun() *run {
	for i := 0; i < len(s.ready); {
		r := s.ready[i]
		switch {
		case r.next >= r.limit:
			s.ready = slices.Delete(s.ready, i, i+1)
		case s.worthStarting(r):
			return r
		default:
			i++
		}
	}
	return nil
}

// worthStarting reports whether a goroutine should start the next piece of a run. A search that may
// stop early does not start it if the pieces that are being decided will probably find enough
// matches. It expects as many matches per unit in them as in the finished pieces: with k units
// finished and b units started,
//
//	expected(b) = sum * b / k   and the piece is started while   expected(b) < enough(b)
//
// A goroutine for which there is no piece ends. One that finishes a piece asks again.
func (s *search) worthStarting(r *run) bool {
	if s.r.CountAll || r.next == r.done {
		return true
	}
	if r.done == 0 {
		return false // wait for the first piece
	}

	k, b := r.pieces[r.done-1].units, r.pieces[r.next-1].units
	return float64(r.sum)*float64(b) < float64(s.enoughMatches(s.r.MaxMatches, b))*float64(k)
}

// startHelper starts another goroutine if a core is free. The caller must hold s.mu.
func (s *search) startHelper(ctx context.Context, wg *sync.WaitGroup) {
	if !s.gate.tryEnter() {
		return
	}

	s.busy++
	wg.Add(1)

	go func() {
		defer wg.Done()
		s.runTasks(ctx, wg)
	}()
}

// bind finds the candidates of a run and cuts them into pieces.
func (s *search) bind(e *evaluator, r *run) error {
	start := clock.Now()
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
	if !s.r.CountAll || s.p.words != nil || r.b.candidates <= cacheCandidates && len(r.b.docs) <= cacheCandidates {
		r.b.cache = s.v.set.cache
	}

	// The order matters only if the search may stop early.
	if !s.r.CountAll {
		r.b.moveNamedFirst()
	}

	if s.r.OnePerRepo {
		r.repoFound = make([]atomic.Bool, len(r.m.repos))
	}

	r.makePieces(s.r.CountAll)
	s.r.Progress.Add(int64(len(r.b.docs)), 0, 0, 0)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.planning += clock.Since(start)
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

// dropRun handles an error of a run. If its files cannot be used, the run has no hits, and the search
// goes on. It returns any other error.
func (s *search) dropRun(r *run, err error) error {
	if !file.Unusable(err) {
		return err
	}

	s.v.set.report(r.m, err)

	s.mu.Lock()
	defer s.mu.Unlock()

	r.failed = true
	r.limit = 0
	return nil
}

// makePieces cuts the candidate documents into pieces. If countAll is set, the search counts all
// matches, and pieces have about 64 units; otherwise about 16, 32, 64 ... 512. The number of cores
// has no effect, so that the answer does not depend on it:
//
//	documents of 10, 3, 5, 20, 15 units  ->  {10 3 5} {20 15}
func (r *run) makePieces(countAll bool) {
	size, maxSize := pieceFirst, pieceUnits
	if countAll {
		size, maxSize = pieceAll, pieceAll
	}

	docs := r.b.docs
	start := 0  // first document of the current piece
	units := 0  // units of all documents so far
	before := 0 // units of the complete pieces
	for i, d := range docs {
		units += int(r.b.s.docUnit.At(int(d)+1) - r.b.s.docUnit.At(int(d)))

		full := units-before >= size || i-start+1 >= pieceDocs
		if full || i == len(docs)-1 {
			r.pieces = append(r.pieces, piece{docs: docs[start : i+1], units: units})
			start, before, size = i+1, units, min(2*size, maxSize)
		}
	}
}

// decidePiece decides the documents of the i-th piece of a run. If the decided pieces have enough
// matches, it lowers the limit of the run, which stops the search there.
func (s *search) decidePiece(ctx context.Context, e *evaluator, r *run, i int) error {
	pc := &r.pieces[i]
	for k, d := range pc.docs {
		if k&15 == 15 { // check ctx for every 16th document, which costs next to nothing
			if err := ctx.Err(); err != nil {
				return err
			}
		}

		e.moveTo(r.b, int(d))

		// After the first units of a large result, caching would only evict other blocks.
		if pc.units >= cacheUnits && r.b.candidates > cacheCandidates {
			e.t.cache = nil
		}

		have := len(pc.hits)
		err := s.decideDocument(ctx, e, r, pc)

		// A stopped matcher may have missed matches of this document: drop its hits.
		if s.stopped.Load() {
			pc.hits = pc.hits[:have]
			return ctx.Err()
		}

		if err != nil {
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
		if !s.r.CountAll && r.sum >= s.enoughMatches(s.r.MaxMatches, last) && r.done < r.limit {
			r.limit = r.done
		}
	}
	return nil
}

// decideDocument adds a hit to the piece for each occurrence of the current document that satisfies
// the query.
func (s *search) decideDocument(ctx context.Context, e *evaluator, r *run, pc *piece) error {
	sh := r.b.s
	for o := int(sh.docOccur.At(e.doc)); o < int(sh.docOccur.At(e.doc+1)); o++ {
		// Skip a repository that is not in the view, or of which a file is found with OnePerRepo.
		number := sh.occRepo.At(o)
		repo := r.m.repos[number]
		if repo == nil || r.repoFound != nil && r.repoFound[number].Load() {
			continue
		}
		mask := repo.mask(sh, o)
		if mask == 0 {
			continue
		}

		condition := s.p.root
		if s.p.words != nil {
			condition = s.p.words.filter
		}
		mask, err := e.revisionsHolding(condition, o, mask)
		if err != nil {
			return err
		}
		if mask == 0 {
			continue
		}
		if s.p.words != nil {
			s.addEstimate(e, hit{run: r, doc: uint32(e.doc), occ: uint32(o), mask: mask}, pc)
			continue
		}

		// Find all matches, so that they can be counted and scored.
		var spans, names []match.Span
		if !s.r.FilesOnly {
			if spans, err = e.spansToShow(o, mask); err != nil {
				return err
			}
			names = e.nameSpans(o)
		}
		if err := ctx.Err(); err != nil {
			return err // a stopped matcher may have missed matches
		}

		h := hit{run: r, doc: uint32(e.doc), occ: uint32(o), mask: mask, content: int32(len(spans)), names: int32(len(names))}
		h.score = float32(s.score(e, r, o, spans))
		pc.hits = append(pc.hits, h)
		pc.matches += s.limitCost(h)
		if r.repoFound != nil {
			r.repoFound[number].Store(true)
		}
	}
	return nil
}

package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Search answers r from the parts of the view. The context's end stops it
// soon: a deadline gives what was found so far with Cut, a cancellation gives
// the context's error. A damaged file is quarantined and its parts are listed
// in Result.Failed.
//
// It goes in two rounds. The first decides documents and keeps a short note
// of each that matches; the second makes files of the notes that rank first.
// Every shard is worked on by all cores: its candidates are cut into pieces
// which any goroutine takes; notes are put together in the order of pieces,
// so that the answer does not depend on who was faster.
func (v *View) Search(ctx context.Context, r Request) (*Result, error) {
	start := time.Now()
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
	// An expression can take long over a single document.
	stop := context.AfterFunc(ctx, p.stop)
	defer stop()
	s := &search{v: v, r: r, p: p, ctx: ctx, gate: v.set.gate}
	for _, m := range v.members {
		s.runs = append(s.runs, &run{m: m})
	}
	s.planning = time.Since(start)
	defer context.AfterFunc(ctx, s.stop)()
	if err := s.first(start); err != nil {
		return nil, err
	}
	res, err := s.render()
	s.giveBack(s.evaluator(), s.runs...)
	if err != nil {
		return nil, err
	}
	res.Stats.Searching = time.Since(start) - s.planning
	return res, nil
}

const (
	defaultMaxMatches  = 1000
	defaultMemoryLimit = 256 << 20
)

// search is one request at work.
type search struct {
	v    *View
	r    Request
	p    *plan
	ctx  context.Context
	gate *gate

	stopped atomic.Bool // the matchers no longer tell the truth

	mu       sync.Mutex // guards the fields below
	runs     []*run     // by member
	next     int        // member to bind next
	ready    []*run     // bound ones with pieces that nobody has taken
	busy     int        // goroutines that may still add to ready
	spent    time.Duration
	planning time.Duration
	stats    Stats
	err      error
	cut      bool
}

// run is a search in one shard.
type run struct {
	m      *member
	b      *bound
	pieces []piece
	next   int // piece to take next
	done   int // pieces from the first on that are finished
	sum    int // matches in those
	limit  int // pieces that count; later ones are left out by an early stop
	failed bool
}

// piece is a run of candidates that one goroutine decides at a time.
type piece struct {
	docs    []uint32
	units   int // of its documents and of those of the pieces before
	notes   []note
	matches int
	ended   bool
}

// note is what the first round keeps of a file.
type note struct {
	run     *run
	doc     uint32
	occ     uint32
	mask    uint64
	matches int32 // in the content; at least 1 for ranking within MaxMatches
	content bool
	score   float32
}

// The size of a piece: enough work to be worth handing out, little enough that
// a light search waits for at most a few milliseconds of a heavy one. Where a
// search may stop early the first piece is small, since the first few
// documents may be all that is wanted, and each is twice the one before.
const (
	pieceUnits = 512
	pieceAll   = 64 // where all are counted, and light searches wait for the end of a piece
	pieceFirst = 16
	pieceDocs  = 256
)

// stopFactor is how many times the matches that are shown a search collects,
// at least and over all of its shards, before it stops where not all are to be
// counted: ranking chooses among them. Each shard gives its share of them, but
// stopShare times what is shown, since others may have none. Where matches
// are rare among the candidates, it takes half as many after each stopUnits
// units, but never fewer than are shown: a better choice is not worth reading
// everything.
const (
	stopFactor = 4
	stopShare  = 2
	stopLeast  = 250
	stopUnits  = 12 * pieceUnits
)

// enough is how many matches end a search after some units of a shard.
func (s *search) enough(units int) int {
	shown := s.r.MaxMatches
	choice := max(shown*stopShare, max(shown*stopFactor, stopLeast)/max(s.r.Shards, 1))
	return max(shown, choice>>(units/stopUnits))
}

// stop ends matchers that are at work in a long text.
func (s *search) stop() {
	s.stopped.Store(true)
	for _, p := range s.p.patterns {
		p.m.Stop()
	}
}

// first does the first round, within the greater part of the time that is
// left: the second must have some to show what was found.
func (s *search) first(now time.Time) error {
	whole := s.ctx
	if deadline, ok := whole.Deadline(); ok {
		ctx, cancel := context.WithDeadline(whole, now.Add(deadline.Sub(now)*9/10))
		defer cancel()
		s.ctx = ctx
	}
	err := s.work()
	s.ctx = whole
	s.err = nil
	return err
}

// work does the first round: this goroutine and as many helpers as there are
// free cores.
func (s *search) work() error {
	if err := s.gate.enter(s.ctx, light); err != nil {
		return s.ended(err)
	}
	var wg sync.WaitGroup
	s.busy = 1
	s.loop(&wg)
	wg.Wait()
	return s.ended(s.err)
}

// ended turns the end of the context into what Search promises.
func (s *search) ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		s.cut = true
		return nil
	}
	return err
}

// loop takes tasks until there are none. It holds a slot of the gate.
func (s *search) loop(wg *sync.WaitGroup) {
	e := s.evaluator()
	lane := light
	inside := true
	for {
		task := s.take(e, wg)
		if task == nil {
			break
		}
		began := time.Now()
		err := guarded(task)
		s.mu.Lock()
		s.spent += time.Since(began)
		if s.spent > heavyAfter {
			lane = heavy
		}
		if err != nil && s.err == nil {
			s.err = err
		}
		s.mu.Unlock()
		if err := s.gate.yield(s.ctx, lane); err != nil {
			s.fail(err)
			inside = false
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
	s.giveBack(e)
	if inside {
		s.gate.leave()
	}
}

func (s *search) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// take gives the next task: to bind a member while there are any, then the
// pieces in order. While more is waiting than this goroutine can do, it calls
// another for help.
func (s *search) take(e *evaluator, wg *sync.WaitGroup) func() error {
	if err := s.ctx.Err(); err != nil {
		s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil
	}
	if r := s.wanted(); r != nil {
		i := r.next
		r.next++
		if s.next < len(s.runs) || s.wanted() != nil {
			s.help(wg)
		}
		return func() error { return s.decide(e, r, i) }
	}
	if s.next < len(s.runs) {
		r := s.runs[s.next]
		s.next++
		if s.next < len(s.runs) {
			s.help(wg)
		}
		return func() error { return s.bind(e, r) }
	}
	return nil
}

// wanted gives the first run with a piece that somebody should take now.
// Called with s.mu held.
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

// worth tells whether the next piece of a run is likely to count. A search
// that may stop early does not begin what those at work will make superfluous,
// going by the matches in the pieces before: whoever ends one comes back for
// the next.
func (s *search) worth(r *run) bool {
	if s.r.CountAll || r.next == r.done {
		return true
	}
	if r.done == 0 {
		return false
	}
	known, begun := r.pieces[r.done-1].units, r.pieces[r.next-1].units
	return float64(r.sum)*float64(begun) < float64(s.enough(begun))*float64(known)
}

// help starts another goroutine if a core is free. Called with s.mu held.
func (s *search) help(wg *sync.WaitGroup) {
	if !s.gate.tryEnter() {
		return
	}
	s.busy++
	wg.Add(1)
	go func() {
		defer wg.Done()
		s.loop(wg)
	}()
}

// guarded runs a task and turns a fault of reading a mapped file, which has
// become shorter behind our back, into an error.
func guarded(task func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return task()
}

// bind finds the candidates of a member and cuts them into pieces. Few are
// decided at once.
func (s *search) bind(e *evaluator, r *run) error {
	began := time.Now()
	err := guarded(func() error {
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
	if !s.r.CountAll || r.b.candidates <= cacheCandidates && len(r.b.docs) <= cacheCandidates {
		r.b.cache = s.v.set.cache
	}
	if !s.r.CountAll {
		r.b.namedFirst()
	}
	r.cut(s.r.CountAll)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planning += time.Since(began)
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

// lose gives up a member whose file is damaged; other errors end the search.
func (s *search) lose(r *run, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	bad := r.m.entry
	if r.m.bad != nil && r.m.err != nil {
		bad = r.m.bad
	}
	if r.m.sym != nil && strings.Contains(err.Error(), r.m.sym.name) {
		bad = r.m.sym
	}
	s.v.set.quarantine(bad.name, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.failed = true
	r.limit = 0
	return nil
}

// cut makes the pieces. Where it cuts depends on the candidates alone.
func (r *run) cut(all bool) {
	docs, units, start, from := r.b.docs, 0, 0, 0
	size, most := pieceFirst, pieceUnits
	if all {
		size, most = pieceAll, pieceAll
	}
	for i, d := range docs {
		units += int(r.b.s.docUnit.at(int(d)+1) - r.b.s.docUnit.at(int(d)))
		if units-from >= size || i-start+1 >= pieceDocs || i == len(docs)-1 {
			r.pieces = append(r.pieces, piece{docs: docs[start : i+1], units: units})
			start, from, size = i+1, units, min(2*size, most)
		}
	}
}

// decide decides the documents of a piece.
func (s *search) decide(e *evaluator, r *run, i int) error {
	pc := &r.pieces[i]
	for k, d := range pc.docs {
		if k&15 == 15 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		e.turn(r.b, int(d))
		if pc.units >= cacheUnits && r.b.candidates > cacheCandidates {
			e.t.cache = nil
		}
		have := len(pc.notes)
		err := s.note(e, r, pc)
		if s.stopped.Load() {
			pc.notes = pc.notes[:have]
			return s.ctx.Err()
		}
		if err != nil {
			if errors.Is(err, ErrDamaged) {
				return s.lose(r, err)
			}
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pc.ended = true
	for r.done < len(r.pieces) && r.pieces[r.done].ended {
		r.sum += r.pieces[r.done].matches
		r.done++
		if !s.r.CountAll && r.sum >= s.enough(r.pieces[r.done-1].units) && r.done < r.limit {
			r.limit = r.done
		}
	}
	return nil
}

// note looks at the occurrences of the present document and notes those that
// satisfy the query.
func (s *search) note(e *evaluator, r *run, pc *piece) error {
	sh := r.b.s
	for o := int(sh.docOccur.at(e.doc)); o < int(sh.docOccur.at(e.doc+1)); o++ {
		repo := r.m.repos[sh.occRepo.at(o)]
		if repo == nil {
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
		spans, err := e.spans(o, mask)
		if err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err // a stopped pattern may have overlooked something
		}
		n := note{run: r, doc: uint32(e.doc), occ: uint32(o), mask: mask, matches: int32(len(spans)), content: len(spans) > 0}
		if n.matches == 0 {
			n.matches = int32(max(1, len(e.nameSpans(o, mask))))
		}
		n.score = float32(s.score(e, r, o, spans))
		pc.notes = append(pc.notes, n)
		pc.matches += int(n.matches)
	}
	return nil
}

package chronicle

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"
)

// trail keeps the accesses of this node in files below the data directory:
//
//	Note ──▶ queue ──▶ audit/reads-20260102T100000.000000000Z.jsonl      what was read
//	   └───▶ queue ──▶ audit/refusals-20260102T100000.000000000Z.jsonl   who was not let in
//
// Whoever reads never waits for a file: what finds a queue full is counted and told
// later. Strangers can be refused as often as they like, so that refusals have
// files of their own: they cannot push out what people read.
type trail struct {
	d               trailDeps
	reads, refusals *series

	looking chan struct{} // holds one token while files are read
}

// trailDeps is what a trail works with.
type trailDeps struct {
	Dir    string // the folder of the files
	Node   string
	Index  func() uint64
	Policy func() Policy
	Hash   func(ctx context.Context, query string) (string, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// newTrail goes on with the files that are there. The caller must call run.
func newTrail(d trailDeps) *trail {
	o := &order{now: d.Now}
	t := &trail{d: d, reads: newSeries(d, o, "reads", 7), refusals: newSeries(d, o, "refusals", 1), looking: make(chan struct{}, 1)}
	for _, s := range t.all() {
		for _, newest := range s.look(context.Background(), &look{Limit: 1}).Lines {
			o.last = later(o.last, newest.At)
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// all are the files by what is in them.
func (t *trail) all() [2]*series { return [2]*series{t.reads, t.refusals} }

// note keeps an access, without waiting for anything.
func (t *trail) note(a Access) {
	s := t.reads
	if a.Refusal {
		s = t.refusals
	}
	index := t.d.Index()
	s.put(func(at time.Time) noted { return noted{line: a.line(t.d.Node, at, index), query: a.Query} })
}

// run writes until ctx ends, and then what is left.
func (t *trail) run(ctx context.Context) error {
	var wait sync.WaitGroup
	for _, s := range t.all() {
		wait.Go(func() { s.run(ctx) })
	}
	wait.Wait()
	return nil
}

// order gives accesses their times. No two have the same, and none is older than
// one that was queued before it, also where the clock was put back: so files are in
// order. It is safe for concurrent use.
type order struct {
	now func() time.Time

	mu   sync.Mutex // guards last
	last time.Time
}

// next calls put with the next time, one call after the other.
func (o *order) next(put func(at time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.now().Round(0)
	if !at.After(o.last) {
		at = o.last.Add(1)
	}
	o.last = at
	put(at)
}

// Modes of the folder and the files: nobody else learns who reads what.
const (
	folderMode os.FileMode = 0o700
	fileMode   os.FileMode = 0o600
)

package chronicle

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"
)

// trail stores the accesses of this node in files of the data directory:
//
//	Note ──▶ queue ──▶ audit/reads-20260102T100000.000000000Z.jsonl      reads
//	   └───▶ queue ──▶ audit/refusals-20260102T100000.000000000Z.jsonl   refusals
//
// Requests never wait for a file. If a queue is full, the access is counted, and the loss reported
// later. Anonymous clients can cause any number of refusals. Those have their own files, so that
// they cannot displace reads.
type trail struct {
	d               trailDeps
	reads, refusals *series

	looking chan struct{} // holds one token during a search
}

// trailDeps are the other parts that a trail uses.
type trailDeps struct {
	Dir    string // folder of the files
	Node   string
	Index  func() uint64
	Policy func() Policy
	Hash   func(ctx context.Context, query string) (string, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// newTrail returns a trail over the existing files. The caller must call run.
func newTrail(d trailDeps) *trail {
	times := &ascendingClock{now: d.Now}
	t := &trail{d: d, reads: newSeries(d, times, "reads", 7), refusals: newSeries(d, times, "refusals", 1), looking: make(chan struct{}, 1)}
	for _, s := range t.allSeries() {
		for _, newest := range s.search(context.Background(), &look{Limit: 1}).Lines {
			times.last = laterOf(times.last, newest.At)
		}
	}
	return t
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// allSeries returns both series.
func (t *trail) allSeries() [2]*series { return [2]*series{t.reads, t.refusals} }

// queue queues an access. It never blocks.
func (t *trail) queue(a Access) {
	s := t.reads
	if a.Refusal {
		s = t.refusals
	}
	index := t.d.Index()
	s.queueAccess(func(at time.Time) noted { return noted{line: a.line(t.d.Node, at, index), query: a.Query} })
}

// run writes until ctx ends, and then the rest.
func (t *trail) run(ctx context.Context) error {
	var wait sync.WaitGroup
	for _, s := range t.allSeries() {
		wait.Go(func() { s.run(ctx) })
	}
	wait.Wait()
	return nil
}

// ascendingClock assigns times to accesses. No two are equal, and they ascend even if the clock is set back.
// So files are sorted. It is safe for concurrent use.
type ascendingClock struct {
	now func() time.Time

	mu   sync.Mutex // guards last
	last time.Time
}

// next calls put with the next time, one call after the other.
func (o *ascendingClock) next(put func(at time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.now().Round(0)
	if !at.After(o.last) {
		at = o.last.Add(1)
	}
	o.last = at
	put(at)
}

// Modes of folder and files: only the owner of the process may read them.
const (
	folderMode os.FileMode = 0o700
	fileMode   os.FileMode = 0o600
)

package ask

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/model"
)

// Turn is one question and its answer while it is being made on this node. Its
// methods are safe for concurrent use.
type Turn struct {
	Report // guarded by mu while it runs, but for ID, Query and First

	kit    *kit
	keeper *keeper
	asker  catalog.Viewer
	viewer catalog.Viewer // asker, bound to the repositories of the question
	asked  Question
	client *model.Client
	limit  model.Limit
	began  time.Time
	loop   *loop
	fence  uint64 // under which the catalog lets this node answer
	number int    // of the turns of the thread before it

	mu      sync.Mutex
	events  []Event
	shown   int // how many of events watchers see
	size    int
	wake    chan struct{} // that there is something to show
	changed chan struct{} // closed, and made anew, when watchers can see more
	halt    context.CancelCauseFunc
	last    bool // the last event was emitted
	ended   bool // and is seen
	lost    bool // it could not be kept
}

// errStopped ends a turn for its asker.
var errStopped = errors.New("stopped by the asker")

// maxEvents and maxEventText bound the log of a turn. The last event comes also
// where there are as many.
const (
	maxEvents    = 50_000
	maxEventText = 2 << 20
)

// lostEvents is how many numbers a turn takes whose node was lost: behind all that
// it can have had there are two, which say so.
const lostEvents = maxEvents + 1 + 2

const idLength = 32

// newID is 128 random bits: who has the link of a thread that is public may read it.
// The id has idLength characters.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// emit adds an event.
func (t *Turn) emit(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// The end is never dropped: watchers wait for it.
	if t.last || e.Kind != KindDone && (len(t.events) >= maxEvents || t.size+len(e.Text) > maxEventText) {
		return
	}

	// Counted with what joins another event, or the bound would be of no use.
	t.size += len(e.Text)
	if t.joinLocked(&e) {
		return
	}
	e.N = t.First + len(t.events)
	t.events = append(t.events, e)
	t.last = e.Kind == KindDone

	t.stir()
}

// joinLocked adds a piece of text to the one before, which nobody has seen yet.
func (t *Turn) joinLocked(e *Event) bool {
	n := len(t.events)
	if n == t.shown || e.Kind != KindText && e.Kind != KindReasoning {
		return false
	}

	// Of the same step and kind only: between others a reader would lose where it was.
	last := &t.events[n-1]
	if last.Kind != e.Kind || last.Step != e.Step {
		return false
	}
	last.Text += e.Text
	return true
}

// stir wakes the publisher.
func (t *Turn) stir() {
	select {
	case t.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Events returns those after a number that watchers see, and a channel that closes
// when there are more; ended says that there will be none.
func (t *Turn) Events(after int) (events []Event, more <-chan struct{}, ended, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from := max(after-t.First+1, 0); from < t.shown {
		events = slices.Clone(t.events[from:t.shown])
	}
	return events, t.changed, t.ended, t.lost
}

// show lets watchers see the first n events.
func (t *Turn) show(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = n

	// The end is seen last, when the answer is in the thread.
	t.ended = t.last && n == len(t.events)
	// All who wait wake, and ask for the new channel together with the events.
	close(t.changed)
	t.changed = make(chan struct{})
}

// lose tells watchers that the end is not here.
func (t *Turn) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
	close(t.changed)
	t.changed = make(chan struct{})
}

// Now is the report as far as it is. It is the caller's own.
func (t *Turn) Now() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reportLocked()
}

func (t *Turn) reportLocked() Report {
	r := t.Report
	r.Answer, r.Limits, r.Reads = slices.Clone(r.Answer), slices.Clone(r.Limits), slices.Clone(r.Reads)
	if t.last {
		r.Last = t.First + len(t.events) - 1
	}
	return r
}

// end ends the work on the turn. Where the asker stops it, what was said is kept.
func (t *Turn) end(why error) {
	t.mu.Lock()
	halt := t.halt
	t.mu.Unlock()
	if halt != nil {
		halt(why)
	}
}

// limits notes why an answer is less than it could be, once.
func (t *Turn) limits(why string) {
	t.mu.Lock()
	known := slices.Contains(t.Limits, why)
	if !known {
		t.Limits = append(t.Limits, why)
	}
	t.mu.Unlock()
	if !known {
		t.emit(Event{Kind: KindNote, Text: why})
	}
}

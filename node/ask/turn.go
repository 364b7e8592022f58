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

// Turn is a question and its answer while it runs on this node. Its methods are safe for
// concurrent use.
type Turn struct {
	Report // guarded by mu while it runs, except ID, Query and First

	kit      *kit
	keeper   *keeper
	asker    catalog.Viewer
	viewer   catalog.Viewer // asker, restricted to the repositories of the question
	question Question
	client   *model.Client
	limit    model.Limit
	began    time.Time
	loop     *loop
	fence    uint64 // the catalog's fence of this turn
	number   int    // turns before it in the thread

	mu      sync.Mutex
	events  []Event
	shown   int // how many events watchers see
	size    int
	wake    chan struct{} // signals that there is something to show
	changed chan struct{} // closed and replaced when watchers can see more
	halt    context.CancelCauseFunc
	last    bool // the last event was emitted
	ended   bool // the last event is shown
	lost    bool // the turn could not be stored
}

// errStopped ends a turn that its asker stopped.
var errStopped = errors.New("stopped by the asker")

// maxEvents and maxEventText limit the events of a turn. The last event is always added.
const (
	maxEvents    = 50_000
	maxEventText = 2 << 20
)

// lostEvents is how many numbers a lost turn takes: all that it could have used, and two for the
// events that report the loss.
const lostEvents = maxEvents + 1 + 2

const idLength = 32

// newID returns 128 random bits in hex, idLength characters. The id must be hard to guess, since
// everybody with the link may read a public thread.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// emit adds an event.
func (t *Turn) emit(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Never drop the last event: watchers wait for it.
	if t.last || e.Kind != KindDone && (len(t.events) >= maxEvents || t.size+len(e.Text) > maxEventText) {
		return
	}

	// Count text that joins another event too, or the limit would have no effect.
	t.size += len(e.Text)
	if t.joinLocked(&e) {
		return
	}
	e.N = t.First + len(t.events)
	t.events = append(t.events, e)
	t.last = e.Kind == KindDone

	t.wakePublisher()
}

// joinLocked appends the text of e to the last event instead of adding an event, if both are alike
// and nobody has seen the last one. The caller holds mu.
func (t *Turn) joinLocked(e *Event) bool {
	n := len(t.events)
	if n == t.shown || e.Kind != KindText && e.Kind != KindReasoning {
		return false
	}

	// Join text only with text of the same step and kind: watchers show these separately.
	last := &t.events[n-1]
	if last.Kind != e.Kind || last.Step != e.Step {
		return false
	}
	last.Text += e.Text
	return true
}

// wakePublisher wakes publish.
func (t *Turn) wakePublisher() {
	select {
	case t.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Events returns the shown events after a number, and a channel that closes when there are more.
// ended reports that there will be none; lost that the turn could not be stored.
func (t *Turn) Events(after int) (events []Event, more <-chan struct{}, ended, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from := max(after-t.First+1, 0); from < t.shown {
		events = slices.Clone(t.events[from:t.shown])
	}
	return events, t.changed, t.ended, t.lost
}

// showEvents makes the first n events visible to watchers.
func (t *Turn) showEvents(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = n

	// The end becomes visible last, when the answer is in the thread.
	t.ended = t.last && n == len(t.events)
	// Wake all watchers; they get the new channel with the events.
	close(t.changed)
	t.changed = make(chan struct{})
}

// reportLoss tells watchers that the turn could not be stored.
func (t *Turn) reportLoss() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
	close(t.changed)
	t.changed = make(chan struct{})
}

// Now returns a copy of the report so far.
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

// cancelTurn cancels the turn. What was said so far stays.
func (t *Turn) cancelTurn(why error) {
	t.mu.Lock()
	halt := t.halt
	t.mu.Unlock()
	if halt != nil {
		halt(why)
	}
}

// addLimit adds, once, a reason why the answer is less than it could be.
func (t *Turn) addLimit(why string) {
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

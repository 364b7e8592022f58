package operate

import (
	"sync"
	"time"
)

const (
	maxDeliveries = 10_000    // ids remembered
	deliveryLife  = time.Hour // how long an id is remembered
)

// deliveries remembers the ids of webhook events. A host may send an event again, and an attacker
// may replay one. It is safe for concurrent use.
type deliveries struct {
	now func() time.Time

	mu      sync.Mutex // guards the fields below
	handled map[string]time.Time
	order   []string // oldest first
}

// newDeliveries returns an empty deliveries.
func newDeliveries(now func() time.Time) *deliveries {
	return &deliveries{now: now, handled: map[string]time.Time{}}
}

// wasHandled reports whether an event was handled before.
func (d *deliveries) wasHandled(req WebhookRequest) bool {
	// An event without an id counts as new. Its jobs are queued once more, which does no harm.
	if req.Delivery == "" {
		return false
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.handled[d.key(req)]
	return known && d.now().Sub(at) < deliveryLife
}

// recordHandled records a handled event.
func (d *deliveries) recordHandled(req WebhookRequest) {
	if req.Delivery == "" {
		return
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	key := d.key(req)
	// A repeated id keeps its place, so that order holds each id once.
	if _, known := d.handled[key]; !known {
		d.order = append(d.order, key)
	}
	d.handled[key] = d.now()

	// Drop the oldest: repeats come within minutes.
	for len(d.order) > maxDeliveries {
		delete(d.handled, d.order[0])
		d.order = d.order[1:]
	}
}

func (*deliveries) key(req WebhookRequest) string { return req.Connection + "\x00" + req.Delivery }

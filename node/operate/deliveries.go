package operate

import (
	"sync"
	"time"
)

const (
	maxDeliveries = 10_000    // ids that are remembered
	deliveryLife  = time.Hour // how long
)

// deliveries remembers the ids of the events that webhooks brought: a host may
// send one again, and so may who has seen it pass. It may be used from any
// goroutine.
type deliveries struct {
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	seen  map[string]time.Time
	order []string // oldest first
}

// newDeliveries remembers none yet.
func newDeliveries(now func() time.Time) *deliveries {
	return &deliveries{now: now, seen: map[string]time.Time{}}
}

// has reports whether an event came before.
func (d *deliveries) has(req WebhookRequest) bool {
	// Without an id each counts as new: what it asks for is asked for once more, which does no harm.
	if req.Delivery == "" {
		return false
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.seen[d.key(req)]
	return known && d.now().Sub(at) < deliveryLife
}

// add notes an event that was dealt with.
func (d *deliveries) add(req WebhookRequest) {
	if req.Delivery == "" {
		return
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	key := d.key(req)
	// One that comes once more keeps its place, so that each id is in the order once.
	if _, known := d.seen[key]; !known {
		d.order = append(d.order, key)
	}
	d.seen[key] = d.now()

	// The oldest go: what could be sent again is of the last minutes.
	for len(d.order) > maxDeliveries {
		delete(d.seen, d.order[0])
		d.order = d.order[1:]
	}
}

func (*deliveries) key(req WebhookRequest) string { return req.Connection + "\x00" + req.Delivery }

package host

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	pace     = 8                // calls a second for each credential
	inFlight = 4                // calls at a time for each credential
	scarce   = 0.1              // share of the calls of a period below which the rest is spread
	longest  = 15 * time.Minute // that a call waits for a limit to pass; beyond it the listing is partial
)

// longestPeriod is the longest time that a host counts calls over.
const longestPeriod = time.Hour

// Budgets are the limits that code hosts set, one for each host and
// credential: a host counts the calls of a token, whoever makes them. They
// may be used from any goroutine.
type Budgets struct {
	now func() time.Time

	mu  sync.Mutex // guards the field below
	all map[[sha256.Size]byte]*budget
}

// NewBudgets returns budgets that nothing was taken from yet.
func NewBudgets(now func() time.Time) *Budgets {
	return &Budgets{now: now, all: map[[sha256.Size]byte]*budget{}}
}

// of returns the budget of a credential at a host. The credential is kept as
// a hash alone.
func (b *Budgets) of(host, credential string) *budget {
	key := sha256.Sum256([]byte(host + "\x00" + credential))

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[key] == nil {
		b.all[key] = &budget{now: b.now, limiter: rate.NewLimiter(pace, pace), slots: make(chan struct{}, inFlight)}
	}
	return b.all[key]
}

// budget is what one credential may still ask of one host.
type budget struct {
	now     func() time.Time
	limiter *rate.Limiter
	slots   chan struct{}

	mu    sync.Mutex // guards the fields below
	told  Allowance
	until time.Time // nothing is asked before it
}

// Allowance is what a host said last of the limit of a credential.
type Allowance struct {
	Calls     uint64 // made by this node
	Limit     int    // calls of a period; 0 when the host does not say
	Remaining int
	Reset     time.Time // when the period ends
	Until     time.Time // calls wait until then; zero when they do not
	Expires   time.Time // when the credential ends; zero when the host does not say
	Scopes    []string  // what the credential may do, in the words of the host; empty when it does not say
}

// snapshot tells how a budget stands.
func (b *budget) snapshot() Allowance {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.told
	if b.until.After(b.now()) {
		a.Until = b.until
	}
	return a
}

// enter waits until one more call may be made, and returns what to call when
// its answer is there. A wait that would be too long is a refusal which says
// when the call may be made.
func (b *budget) enter(ctx context.Context, wait func(context.Context, time.Duration) error) (leave func(), err error) {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	leave = func() { <-b.slots }

	now := b.now()
	delay := b.limiter.ReserveN(now, 1).DelayFrom(now)

	b.mu.Lock()
	until := b.until
	b.mu.Unlock()

	// A call that would wait for too long fails now, with the time when it may be made.
	delay = max(delay, until.Sub(now))
	if delay > longest {
		leave()
		return nil, b.later(until)
	}

	if err := wait(ctx, delay); err != nil {
		leave()
		return nil, err
	}

	b.mu.Lock()
	b.told.Calls++
	b.mu.Unlock()
	return leave, nil
}

// later is the refusal of a limit that lasts.
func (b *budget) later(until time.Time) *Refusal {
	r := refusal(RateLimited, 429, "the limit of calls is used up; the listing goes on at %s", until.UTC().Format("15:04 MST"))
	r.Until = until
	return r
}

// note takes over what an answer said of the limit: how many calls a period
// has, how many are left, and when it ends. The share of keep stays for
// others who use the same token. What is left beyond it is spread over the
// rest of the period once it is less than a tenth of all.
func (b *budget) note(limit, remaining int, reset time.Time, keep float64) {
	if limit <= 0 {
		return
	}
	now := b.now()

	// No host has longer periods: a time beyond is a mistake, which would stop all calls.
	if last := now.Add(longestPeriod); reset.After(last) {
		reset = last
	}

	b.mu.Lock()
	b.told.Limit, b.told.Remaining, b.told.Reset = limit, remaining, reset
	b.mu.Unlock()

	// What is kept for others counts as spent.
	left, ends := float64(remaining)-keep*float64(limit), reset.Sub(now)
	switch {
	case ends <= 0 || left >= scarce*float64(limit):
		b.limiter.SetLimitAt(now, pace)
	case left < 1:
		b.pause(reset.Add(time.Second))
	default:
		b.limiter.SetLimitAt(now, min(pace, max(rate.Limit(left/ends.Seconds()), 0.01)))
	}
}

// ends takes over when the credential ends.
func (b *budget) ends(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told.Expires = at
}

// may takes over what the credential may do.
func (b *budget) may(scopes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told.Scopes = scopes
}

// pause holds all calls until a time.
func (b *budget) pause(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.until) {
		b.until = until
	}
}

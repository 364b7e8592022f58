package host

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	pace        = 8                // calls per second and credential
	inFlight    = 4                // concurrent calls per credential
	scarceShare = 0.1              // remaining share of a period's calls below which they are spread
	maxWait     = 15 * time.Minute // longest wait of a call for a limit; if longer, the listing is partial
)

// maxPeriod is the longest period of a host's limit.
const maxPeriod = time.Hour

// Budgets have a budget for each host and credential, because hosts count calls per token. They are
// safe for concurrent use.
type Budgets struct {
	now func() time.Time

	mu  sync.Mutex // guards the field below
	all map[[sha256.Size]byte]*budget
}

// NewBudgets returns full budgets.
func NewBudgets(now func() time.Time) *Budgets {
	return &Budgets{now: now, all: map[[sha256.Size]byte]*budget{}}
}

// of returns the budget of a credential at a host. It stores only a hash of the credential.
func (b *Budgets) of(host, credential string) *budget {
	key := sha256.Sum256([]byte(host + "\x00" + credential))

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[key] == nil {
		b.all[key] = &budget{now: b.now, limiter: rate.NewLimiter(pace, pace), slots: make(chan struct{}, inFlight)}
	}
	return b.all[key]
}

// budget limits the calls of one credential to one host.
type budget struct {
	now     func() time.Time
	limiter *rate.Limiter
	slots   chan struct{}

	mu    sync.Mutex // guards the fields below
	told  Allowance
	until time.Time // no calls before this time
}

// Allowance is what a host last announced of a credential's limit.
type Allowance struct {
	Calls     uint64 // made by this node
	Limit     int    // calls per period; 0: unknown
	Remaining int
	Reset     time.Time // end of the period
	Until     time.Time // calls wait until then; zero: they do not wait
	Expires   time.Time // end of the credential; zero: unknown
	Scopes    []string  // what the credential may do, as the host names it; empty: unknown
}

// snapshot returns the state of the budget.
func (b *budget) snapshot() Allowance {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.told
	if b.until.After(b.now()) {
		a.Until = b.until
	}
	return a
}

// enter waits until another call is allowed. It returns a function to call after the answer. If the
// wait would be too long, it returns a Refusal with the time when a call is allowed.
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

	// Fail now instead of waiting too long.
	delay = max(delay, until.Sub(now))
	if delay > maxWait {
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

// later returns the refusal for a used-up limit.
func (b *budget) later(until time.Time) *Refusal {
	r := refusal(RateLimited, 429, "the limit of calls is used up; the listing goes on at %s", until.UTC().Format("15:04 MST"))
	r.Until = until
	return r
}

// note records a limit that a host announced: calls per period, calls left, and the end of the
// period. The share keep is left for other users of the token. When less than a tenth of the calls
// remain, they are spread over the rest of the period.
func (b *budget) note(limit, remaining int, reset time.Time, keep float64) {
	if limit <= 0 {
		return
	}
	now := b.now()

	// A later time is a mistake of the host, and would stop all calls.
	if last := now.Add(maxPeriod); reset.After(last) {
		reset = last
	}

	b.mu.Lock()
	b.told.Limit, b.told.Remaining, b.told.Reset = limit, remaining, reset
	b.mu.Unlock()

	// Calls kept for others count as used.
	left, ends := float64(remaining)-keep*float64(limit), reset.Sub(now)
	switch {
	case ends <= 0 || left >= scarceShare*float64(limit):
		b.limiter.SetLimitAt(now, pace)
	case left < 1:
		b.pause(reset.Add(time.Second))
	default:
		b.limiter.SetLimitAt(now, min(pace, max(rate.Limit(left/ends.Seconds()), 0.01)))
	}
}

// setEnd records when the credential ends.
func (b *budget) setEnd(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told.Expires = at
}

// setScopes records what the credential may do.
func (b *budget) setScopes(scopes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told.Scopes = scopes
}

// pause delays all calls until a time.
func (b *budget) pause(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.until) {
		b.until = until
	}
}

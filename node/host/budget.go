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
	minPace     = 0.01             // the same while few calls are left
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

	mu           sync.Mutex // guards the field below
	byCredential map[[sha256.Size]byte]*budget
}

// NewBudgets returns full budgets.
func NewBudgets(now func() time.Time) *Budgets {
	return &Budgets{now: now, byCredential: map[[sha256.Size]byte]*budget{}}
}

// budgetFor returns the budget of a credential at a host. It stores only a hash of the credential.
func (b *Budgets) budgetFor(host, credential string) *budget {
	key := sha256.Sum256([]byte(host + "\x00" + credential))

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byCredential[key] == nil {
		b.byCredential[key] = &budget{now: b.now, limiter: rate.NewLimiter(pace, pace), slots: make(chan struct{}, inFlight)}
	}
	return b.byCredential[key]
}

// budget limits the calls of one credential to one host.
type budget struct {
	now     func() time.Time
	limiter *rate.Limiter
	slots   chan struct{}

	mu        sync.Mutex // guards the fields below
	announced Allowance
	until     time.Time // no calls before this time
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

// snapshot returns what the host has announced, and until when calls wait.
func (b *budget) snapshot() Allowance {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.announced
	if b.until.After(b.now()) {
		a.Until = b.until
	}
	return a
}

// waitForCall waits until another call is allowed. The caller must call leave after the answer. If the
// wait would exceed maxWait, waitForCall returns a Refusal at once, with the time when a call is allowed.
func (b *budget) waitForCall(ctx context.Context, wait func(context.Context, time.Duration) error) (leave func(), err error) {
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

	delay = max(delay, until.Sub(now))
	if delay > maxWait {
		leave()
		return nil, b.refuseUntil(until)
	}

	if err := wait(ctx, delay); err != nil {
		leave()
		return nil, err
	}

	b.mu.Lock()
	b.announced.Calls++
	b.mu.Unlock()
	return leave, nil
}

// refuseUntil returns the refusal of a call because the limit is used up until a time.
func (b *budget) refuseUntil(until time.Time) *Refusal {
	r := refusal(RateLimited, 429, "the limit of calls is used up; the listing goes on at %s", until.UTC().Format("15:04 MST"))
	r.Until = until
	return r
}

// recordLimit records a limit that a host announced: calls per period, calls left, and the end of
// the period. It leaves the share keep of the calls to other users of the token. When less than
// scarceShare of the calls is left, it spreads them over the rest of the period.
func (b *budget) recordLimit(limit, remaining int, reset time.Time, keep float64) {
	if limit <= 0 {
		return
	}
	now := b.now()

	// A later end must be a mistake of the host, and could stop all calls.
	if last := now.Add(maxPeriod); reset.After(last) {
		reset = last
	}

	b.mu.Lock()
	b.announced.Limit, b.announced.Remaining, b.announced.Reset = limit, remaining, reset
	b.mu.Unlock()

	// Calls kept for others count as used.
	callsLeft := float64(remaining) - keep*float64(limit)
	timeLeft := reset.Sub(now) // of the period
	switch {
	case timeLeft <= 0 || callsLeft >= scarceShare*float64(limit):
		b.limiter.SetLimitAt(now, pace)
	case callsLeft < 1:
		b.pauseUntil(reset.Add(time.Second))
	default:
		b.limiter.SetLimitAt(now, min(pace, max(rate.Limit(callsLeft/timeLeft.Seconds()), minPace)))
	}
}

// setEnd records when the credential ends.
func (b *budget) setEnd(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced.Expires = at
}

// setScopes records what the credential may do.
func (b *budget) setScopes(scopes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced.Scopes = scopes
}

// pauseUntil delays all calls until a time.
func (b *budget) pauseUntil(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.until) {
		b.until = until
	}
}

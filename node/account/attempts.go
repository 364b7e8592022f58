package account

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of failed sign-ins.
const (
	freeAttempts   = 5                // per account and address, before there is a wait
	freeOfAddress  = 20               // per address, for any account
	freeOfAccount  = 50               // per account, from any address: high, so that others cannot lock it
	maxWait        = 15 * time.Minute // for an address
	accountWait    = 30 * time.Second // for an account: a nuisance, not a lock
	attemptsMemory = time.Hour        // failures are forgotten after this time without another
	maxAttempts    = 20000            // remembered counts
)

// attempts counts failed sign-ins in the memory of this node, because strangers must not write to
// the catalog. After the free ones, each failure doubles the wait, starting with a second. It is
// safe for concurrent use.
type attempts struct {
	now func() time.Time

	mu     sync.Mutex // guards counts
	counts map[string]*failures
}

type failures struct {
	count int
	last  time.Time
	wait  time.Duration // after last, until the next attempt is allowed
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, counts: map[string]*failures{}}
}

// bound is one of the counts that an attempt belongs to.
type bound struct {
	key     string
	free    int
	longest time.Duration
}

// boundsOf returns the limits that apply to a sign-in attempt: of the account at the address, of
// the address, and of the account.
func boundsOf(email, address string) [3]bound {
	// A single count could be evaded: with many accounts, many addresses, or one of each.
	from := networkOf(address)
	return [3]bound{
		{"both " + from + " " + email, freeAttempts, maxWait},
		{"from " + from, freeOfAddress, maxWait},
		{"to " + email, freeOfAccount, accountWait},
	}
}

// networkOf returns the unit by which addresses are counted: for IPv6 the /64 network.
func networkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Unmap().Is4() {
		return address
	}
	p, _ := a.Prefix(64) // 64 bits fit
	return p.String()
}

// waitTime returns how long a client must wait before the next attempt; 0: not at all.
func (x *attempts) waitTime(email, address string) (d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	for _, b := range boundsOf(email, address) {
		f := x.counts[b.key]
		if f == nil {
			continue
		}

		// If the clock was set back, restart the wait. It would otherwise last too long.
		if now.Before(f.last) {
			f.last = now
		}
		d = max(d, f.wait-now.Sub(f.last))
	}
	return d
}

// recordFailure records a failed attempt.
func (x *attempts) recordFailure(email, address string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	// Make room for the three counts of this failure.
	x.makeRoom(now)

	for _, b := range boundsOf(email, address) {
		f := x.counts[b.key]
		// Start again after a quiet hour, so that occasional typing errors do not add up.
		if f == nil || now.Sub(f.last) > attemptsMemory {
			f = &failures{}
			x.counts[b.key] = f
		}

		f.count++
		f.last = now
		// The wait is 1 s, 2 s, 4 s and so on, up to the longest.
		if over := f.count - b.free; over >= 0 {
			f.wait = min(b.longest, time.Second<<min(over, 20))
		}
	}
}

// succeeded forgets the failures of one account from one address. Those of the address stay,
// because the client may still guess other accounts.
func (x *attempts) succeeded(email, address string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.counts, boundsOf(email, address)[0].key)
}

// makeRoom drops old counts, and if necessary the older half.
func (x *attempts) makeRoom(now time.Time) {
	// Halve the age each time, so that the oldest go first. One failure adds 3 counts.
	for age := attemptsMemory; len(x.counts) > maxAttempts-3; age /= 2 {
		for key, f := range x.counts {
			// Also drop counts in the future: after setting the clock back they would never get
			// old.
			if now.Sub(f.last).Abs() >= age {
				delete(x.counts, key)
			}
		}
	}
}

package account

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of failed attempts to sign in.
const (
	freeAttempts  = 5                // of one account from one address, before there is a wait
	freeOfAddress = 20               // of one address, for whatever accounts
	freeOfAccount = 50               // of one account, from wherever: so that others cannot lock it
	longestWait   = 15 * time.Minute // of an address
	accountWait   = 30 * time.Second // of an account: a nuisance, not a lock
	attemptsKept  = time.Hour        // after the last failure
	mostAttempts  = 20000            // remembered
)

// attempts counts failed attempts to sign in, in the memory of this node
// alone: a stranger must not write to the catalog. After the free ones each
// failure doubles the wait, from a second on. It is safe for concurrent use.
type attempts struct {
	now func() time.Time

	mu     sync.Mutex // guards failed
	counts map[string]*failures
}

type failures struct {
	count int
	last  time.Time
	wait  time.Duration // after last, before the next attempt is allowed
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

func boundsOf(email, address string) [3]bound {
	// One count alone could be evaded: by many accounts, by many addresses, or by one of each.
	from := network(address)
	return [3]bound{
		{"both " + from + " " + email, freeAttempts, longestWait},
		{"from " + from, freeOfAddress, longestWait},
		{"to " + email, freeOfAccount, accountWait},
	}
}

// network is what an address counts as: in IPv6 everybody has a /64.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Unmap().Is4() {
		return address
	}
	p, _ := a.Prefix(64) // 64 bits fit
	return p.String()
}

// wait returns how long a client has to wait before the next attempt; 0 for not at all.
func (x *attempts) wait(email, address string) (d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	for _, b := range boundsOf(email, address) {
		f := x.counts[b.key]
		if f == nil {
			continue
		}

		// The clock went back: the wait begins anew, or it would last until the clock is there again.
		if now.Before(f.last) {
			f.last = now
		}
		d = max(d, f.wait-now.Sub(f.last))
	}
	return d
}

func (x *attempts) failed(email, address string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	// Before counting: the three that follow must find room.
	x.makeRoom(now)

	for _, b := range boundsOf(email, address) {
		f := x.counts[b.key]
		// Counted anew after a quiet hour, so that a person who mistypes now and then is not held up.
		if f == nil || now.Sub(f.last) > attemptsKept {
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

// succeeded forgets the failures of one account from one address; those of the
// address stay, since who has one account may guess at others.
func (x *attempts) succeeded(email, address string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.counts, boundsOf(email, address)[0].key)
}

// makeRoom drops what is old, and where that is not enough the oldest half.
func (x *attempts) makeRoom(now time.Time) {
	// Half the age each time, so that the oldest go first; 3 is what one failure adds.
	for age := attemptsKept; len(x.counts) > mostAttempts-3; age /= 2 {
		for key, f := range x.counts {
			// Also what lies in the future since the clock went back: it would never get old.
			if now.Sub(f.last).Abs() >= age {
				delete(x.counts, key)
			}
		}
	}
}

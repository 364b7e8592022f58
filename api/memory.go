package api

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/host"
)

// The largest request body, in bytes.
const (
	maxBody     = 1 << 20          // of most routes
	largestBody = host.MaxDelivery // of the route that accepts the largest
)

// memory is the server's budget, in bytes, for request bodies in use and answers not yet sent. A
// request that needs more is refused: with 429, or with 413 if it would not fit on an idle node. A
// piece is what one request holds. Its limits depend on its size and its client:
//
// one client: at most half.
//
// large pieces: at most seven eighths together. The last eighth is for small pieces, so that a
// light search works while others download.
//
// strangers: at most half together; their large pieces at most seven eighths of that.
//
// bodies that strangers are sending: at most a quarter together; large ones at most an eighth, or
// one of the largest allowed body.
//
// the operator: no limit.
//
// It is safe for concurrent use.
type memory struct {
	limit int64

	mu      sync.Mutex          // guards the fields below
	held    int64               // bytes of all leases
	shares  [operator + 1]int64 // held, by standing
	clients map[string]int64    // held, by client; clients that hold nothing are missing
}

// smallLease is the largest small piece, in bytes.
const smallLease = 64 << 10

func newMemory(limit int64) *memory {
	return &memory{limit: limit, clients: map[string]int64{}}
}

// lease is the part of the budget that one request holds. It is not safe for concurrent use.
type lease struct {
	of     *memory
	client string
	by     standing
	held   int64
}

func (m *memory) lease(client string, by standing) *lease {
	return &lease{of: m, client: client, by: by}
}

// setStanding changes the standing of the lease's client, which decides its limits.
func (l *lease) setStanding(by standing) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.shares[l.by] -= l.held
	l.of.shares[by] += l.held
	l.by = by
}

// resize changes the size of the lease to n bytes. If a limit forbids that, it returns a failure and
// changes nothing. Shrinking never fails.
func (l *lease) resize(n int64) *failure {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()

	more := n - l.held
	if more > 0 && !m.fits(l, n <= smallLease, more) {
		if most := m.maxFor(l.by); n > most {
			return neverFits(l.by, n, most)
		}
		return overloaded("The node holds as many bytes of requests and answers as it may: try again, or ask for less (matches, contextLines, whole).", time.Second)
	}

	m.held += more
	m.shares[l.by] += more
	l.held = n

	// Forget a client that holds nothing.
	if left := m.clients[l.client] + more; left > 0 {
		m.clients[l.client] = left
	} else {
		delete(m.clients, l.client)
	}
	return nil
}

// neverFits returns the failure for n bytes where the client could hold at most most bytes even on
// an idle node. Its status tells the client not to retry.
func neverFits(by standing, n, most int64) *failure {
	f := &failure{Status: 413, Code: codeAnswerTooLarge}
	f.Message = fmt.Sprintf("The answer takes %d bytes. Of the memory of this node one answer may take %d: ask for less (fewer matches or contextLines, no whole files, one path).", n, most)
	if by == sender {
		f.Code, f.Message = codeTooLarge, fmt.Sprintf("The request body takes %d bytes. Of the memory of this node one body may take %d: send less.", n, most)
	}
	return f
}

// maxFor returns how many bytes a request of a client with this standing can hold on an idle node.
func (m *memory) maxFor(by standing) int64 {
	large := m.limitsFor(false)
	switch by {
	case operator:
		return math.MaxInt64
	case holder:
		return max(min(large.all, large.client), smallLease)
	case stranger:
		return max(min(large.all, large.client, large.strangers), smallLease)
	}
	return max(min(large.all, large.client, large.strangers, large.sending), smallLease)
}

// bounds are limits, in bytes, of what is held together.
type bounds struct {
	all       int64 // by everybody
	client    int64 // by one client
	strangers int64 // by all clients without a credential
	sending   int64 // by bodies that strangers are sending
}

// limitsFor returns the limits for a small or a large piece. Large pieces leave a part of each limit
// to small ones, so that a client can search during its downloads.
func (m *memory) limitsFor(small bool) bounds {
	if small {
		return bounds{all: m.limit, client: m.limit, strangers: m.limit / 2, sending: m.limit / 4}
	}
	mostOf := func(limit int64) int64 { return limit - limit/8 }
	return bounds{all: mostOf(m.limit), client: m.limit / 2, strangers: mostOf(m.limit / 2), sending: max(m.limit/8, largestBody)}
}

// fits reports whether a lease, of a small or large piece, may grow by more bytes. The caller must
// hold the lock.
func (m *memory) fits(l *lease, small bool, more int64) bool {
	if l.by == operator {
		return true
	}

	limits := m.limitsFor(small)
	fits := m.held+more <= limits.all && m.clients[l.client]+more <= limits.client
	if l.by == holder {
		return fits
	}
	strangers := m.shares[stranger] + m.shares[sender]
	return fits && strangers+more <= limits.strangers && (l.by == stranger || m.shares[sender]+more <= limits.sending)
}

// end frees all bytes of the lease.
func (l *lease) end() {
	if l.held > 0 {
		_ = l.resize(0) // shrinking never fails
	}
}

func (m *memory) used() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(m.held)
}

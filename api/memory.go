package api

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/host"
)

// Bytes of the body of a request.
const (
	maxBody     = 1 << 20
	largestBody = host.MaxDelivery // of the route that takes most
)

// memory is the budget, in bytes, of the request bodies that are being read
// and used and of the answers that wait to be written, of all clients
// together. What would exceed it is refused with 429 instead of being held; with 413 where
// it would not even fit alone.
//
//	one client          at most half of it
//	large pieces        at most seven eighths of it together: the last eighth is
//	                    for small ones, so that a light search finds room while
//	                    others download
//	strangers           at most half of it together, large pieces seven eighths
//	                    of that half
//	bodies that they    at most a quarter of it together, large ones at most an
//	are sending         eighth, or one of the largest that there are
//	the operator        as much as they want
//
// It is safe for concurrent use.
type memory struct {
	limit int64

	mu      sync.Mutex // guards the fields below
	held    int64
	shares  [operator + 1]int64 // of held, by standing
	clients map[string]int64
}

// smallLease is what counts as a small piece.
const smallLease = 64 << 10

func newMemory(limit int64) *memory {
	return &memory{limit: limit, clients: map[string]int64{}}
}

// lease is the part of the budget that one request holds. It is used by one
// goroutine at a time.
type lease struct {
	of     *memory
	client string
	by     standing
	held   int64
}

func (m *memory) lease(client string, by standing) *lease {
	return &lease{of: m, client: client, by: by}
}

// become counts what a lease holds for another standing from now on.
func (l *lease) become(by standing) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.shares[l.by] -= l.held
	l.of.shares[by] += l.held
	l.by = by
}

// set makes the lease n bytes large, or says that it cannot grow that far; it
// is unchanged then. Shrinking never fails.
func (l *lease) set(n int64) *failure {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()

	more := n - l.held
	if more > 0 && !m.room(l, n <= smallLease, more) {
		if most := m.most(l.by); n > most {
			return neverFits(l.by, n, most)
		}
		return overloaded("The node holds as many bytes of requests and answers as it may: try again, or ask for less (matches, contextLines, whole).", time.Second)
	}

	m.held += more
	m.shares[l.by] += more
	l.held = n

	// Clients come and go: one that holds nothing is forgotten.
	if left := m.clients[l.client] + more; left > 0 {
		m.clients[l.client] = left
	} else {
		delete(m.clients, l.client)
	}
	return nil
}

// neverFits refuses n bytes where a client can hold fewer, however idle the node is: to try
// again is of no use.
func neverFits(by standing, n, most int64) *failure {
	f := &failure{Status: 413, Code: codeAnswerTooLarge}
	f.Message = fmt.Sprintf("The answer takes %d bytes. Of the memory of this node one answer may take %d: ask for less (fewer matches or contextLines, no whole files, one path).", n, most)
	if by == sender {
		f.Code, f.Message = codeTooLarge, fmt.Sprintf("The request body takes %d bytes. Of the memory of this node one body may take %d: send less.", n, most)
	}
	return f
}

// most is how many bytes a client of a standing can hold while nobody else holds any.
func (m *memory) most(by standing) int64 {
	large := m.boundsOf(false)
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

// bounds are how many bytes may be held together.
type bounds struct {
	all       int64 // by everybody
	client    int64 // by one client
	strangers int64 // by those who have shown no credential
	sending   int64 // by bodies of theirs that are on their way
}

// boundsOf is how many bytes may be held once a piece is taken.
func (m *memory) boundsOf(small bool) bounds {
	// A small piece may use what is left, or a client with downloads could not search.
	if small {
		return bounds{m.limit, m.limit, m.limit / 2, m.limit / 4}
	}
	without := func(limit int64) int64 { return limit - limit/8 }
	return bounds{without(m.limit), m.limit / 2, without(m.limit / 2), max(m.limit/8, largestBody)}
}

// room reports whether a lease may take more bytes. Callers hold the lock.
func (m *memory) room(l *lease, small bool, more int64) bool {
	if l.by == operator {
		return true
	}

	most := m.boundsOf(small)
	fits := m.held+more <= most.all && m.clients[l.client]+more <= most.client
	if l.by == holder {
		return fits
	}
	strangers := m.shares[stranger] + m.shares[sender]
	return fits && strangers+more <= most.strangers && (l.by == stranger || m.shares[sender]+more <= most.sending)
}

// end gives everything back.
func (l *lease) end() {
	if l.held > 0 {
		_ = l.set(0) // shrinking never fails
	}
}

func (m *memory) used() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(m.held)
}

package api

import (
	"sync"
	"time"
)

// memory is the budget, in bytes, of the request bodies that are being read
// and used and of the answers that wait to be written, of all clients
// together. What would exceed it is refused with 429 instead of being held.
//
//	one client     at most half of it
//	large pieces   at most seven eighths of it together: the last eighth is
//	               for small ones, so that a light search finds room while
//	               others download
//
// It is safe for concurrent use.
type memory struct {
	limit int64

	mu      sync.Mutex // guards the fields below
	held    int64
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
	held   int64
}

func (m *memory) lease(client string) *lease { return &lease{of: m, client: client} }

// set makes the lease n bytes large, or says that it cannot grow that far; it
// is unchanged then. Shrinking never fails.
func (l *lease) set(n int64) *failure {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()

	// A small piece may use what is left, or a client with downloads could not search.
	more := n - l.held
	if more > 0 {
		most, share := m.limit-m.limit/8, m.limit/2
		if n <= smallLease {
			most, share = m.limit, m.limit
		}
		if m.held+more > most || m.clients[l.client]+more > share {
			return overloaded("The node holds as many bytes of requests and answers as it may: try again, or ask for less (matches, contextLines, whole).", time.Second)
		}
	}

	m.held += more
	l.held = n

	// Clients come and go: one that holds nothing is forgotten.
	if left := m.clients[l.client] + more; left > 0 {
		m.clients[l.client] = left
	} else {
		delete(m.clients, l.client)
	}
	return nil
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

package api

import (
	"cmp"
	"sync"
	"time"
)

// Limits bound what clients may ask of a node at a time. Zero fields take
// the values of [DefaultLimits], except Rate. Strangers, who show no credential,
// share at most half of Total, of Connections and of Memory. The operator's
// socket is bounded by none.
type Limits struct {
	Rate        float64 // requests a second of one client (a key, or a network without one: an address, of IPv6 a /64), with a burst of twice as many; 0: no limit
	PerClient   int     // requests of one client under way
	Total       int     // requests under way; at most seven eighths of Connections
	Connections int     // open connections
	PerAddress  int     // open connections of one network; 0: half of Connections
	Memory      int64   // bytes of request bodies and of answers that wait to be written, together
}

// DefaultLimits let one client use a node to its full and still keep a
// runaway script from taking all of its memory. The last two fit a machine of
// 4 GiB and a process with 4,096 descriptors.
func DefaultLimits() Limits {
	return Limits{PerClient: 512, Total: 2048, Connections: 2048, Memory: 1 << 30}
}

// filled has the usual values where none are given.
func (l Limits) filled() Limits {
	usual := DefaultLimits()
	l.PerClient = cmp.Or(l.PerClient, usual.PerClient)
	l.Total = cmp.Or(l.Total, usual.Total)
	l.Connections = cmp.Or(l.Connections, usual.Connections)
	l.PerAddress = cmp.Or(l.PerAddress, max(1, l.Connections/2))

	// A connection without a request makes room, so a newcomer finds room: some have to be without.
	l.Total = min(l.Total, max(1, l.Connections-l.Connections/8))
	l.Memory = cmp.Or(l.Memory, usual.Memory)
	return l
}

// standing is what a client has shown of itself.
type standing uint8

const (
	stranger standing = iota // nothing, or a credential that is not good
	sender                   // a stranger whose body is being read; counts for bytes only
	holder                   // a credential
	operator                 // came by the socket in the data directory
)

// limiter counts by client. What it knows of a client that has nothing under
// way and a full bucket is forgotten.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex // guards the fields below
	total   int        // of strangers and of holders
	unknown int        // of strangers
	clients map[string]*client
	swept   time.Time
}

type client struct {
	running int
	tokens  float64
	filled  time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.filled(), now: now, clients: map[string]*client{}}
}

// enter admits a request of a client, or says after how long to try again.
// An admitted request has to leave. The operator is always admitted.
func (l *limiter) enter(name string, by standing) *failure {
	if by == operator {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	// A new client begins with a full bucket.
	now := l.now()
	l.sweep(now)
	c := l.clients[name]
	if c == nil {
		c = &client{tokens: l.burst(), filled: now}
		l.clients[name] = c
	}

	c.fill(l.limits.Rate, l.burst(), now)

	// The whole node first: it is the bound that protects it; the others are fair shares.
	switch {
	case l.total >= l.limits.Total:
		return overloaded("The node has too many requests under way.", time.Second)
	case by == stranger && l.unknown >= max(1, l.limits.Total/2):
		return overloaded("Too many requests without a credential are under way: send an API key, or try again.", time.Second)
	case c.running >= l.limits.PerClient:
		return overloaded("Too many of your requests are under way.", time.Second)

	// What is missing of a token, at the rate at which they come.
	case l.limits.Rate > 0 && c.tokens < 1:
		return overloaded("Too many requests.", time.Duration((1-c.tokens)/l.limits.Rate*float64(time.Second)))
	}

	c.tokens--
	c.running++
	l.total++
	if by == stranger {
		l.unknown++
	}
	return nil
}

func (l *limiter) leave(name string, by standing) {
	if by == operator {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if by == stranger {
		l.unknown--
	}
	if c := l.clients[name]; c != nil {
		c.running--
	}
}

func (l *limiter) burst() float64 { return max(1, 2*l.limits.Rate) }

func (c *client) fill(rate, burst float64, now time.Time) {
	c.tokens = min(burst, c.tokens+now.Sub(c.filled).Seconds()*rate)
	c.filled = now
}

// sweep forgets idle clients, once a minute.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for name, c := range l.clients {
		if c.running == 0 && now.Sub(c.filled) > time.Minute {
			delete(l.clients, name)
		}
	}
}

func overloaded(message string, after time.Duration) *failure {
	return &failure{Status: 429, Code: codeRateLimited, Message: message, RetryAfter: after}
}

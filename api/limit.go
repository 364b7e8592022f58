package api

import (
	"cmp"
	"sync"
	"time"
)

// Limits bound the load by clients. Zero fields mean [DefaultLimits], except Rate. Strangers, who
// send no credential, share at most half of Total, Connections and Memory. The operator's socket
// has no limits.
type Limits struct {
	Rate        float64 // requests a second of one client, with bursts of twice as many; 0: no limit. A client is a key, or without a key an address or /64 of IPv6
	PerClient   int     // running requests of one client
	Total       int     // running requests; at most seven eighths of Connections
	Connections int     // open connections
	PerAddress  int     // open connections of one network; 0: half of Connections
	Memory      int64   // bytes of request bodies and of unsent answers, together
}

// DefaultLimits let one client use the whole node, but keep a runaway script from taking all
// memory. Connections and Memory suit a machine with 4 GiB and a process with 4,096 descriptors.
func DefaultLimits() Limits {
	return Limits{PerClient: 512, Total: 2048, Connections: 2048, Memory: 1 << 30}
}

// withDefaults replaces zeros by the defaults.
func (l Limits) withDefaults() Limits {
	usual := DefaultLimits()
	l.PerClient = cmp.Or(l.PerClient, usual.PerClient)
	l.Total = cmp.Or(l.Total, usual.Total)
	l.Connections = cmp.Or(l.Connections, usual.Connections)
	l.PerAddress = cmp.Or(l.PerAddress, max(1, l.Connections/2))

	// Keep some connections without a request, because a new connection closes one of them.
	l.Total = min(l.Total, max(1, l.Connections-l.Connections/8))
	l.Memory = cmp.Or(l.Memory, usual.Memory)
	return l
}

// standing is how far a client is identified.
type standing uint8

const (
	stranger standing = iota // no valid credential
	sender                   // a stranger whose body is being read; only counts for memory
	holder                   // a valid credential
	operator                 // connected by the socket in the data directory
)

// limiter limits the requests of each client. It forgets idle clients with a full bucket.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex // guards the fields below
	total   int        // running requests of strangers and holders
	unknown int        // running requests of strangers
	clients map[string]*client
	swept   time.Time
}

type client struct {
	running int
	tokens  float64
	filled  time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.withDefaults(), now: now, clients: map[string]*client{}}
}

// enter admits a request, or returns a failure with the time to retry. An admitted request must
// call leave. The operator is always admitted.
func (l *limiter) enter(name string, by standing) *failure {
	if by == operator {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	// A new client has a full bucket.
	now := l.now()
	l.sweep(now)
	c := l.clients[name]
	if c == nil {
		c = &client{tokens: l.burst(), filled: now}
		l.clients[name] = c
	}

	c.fill(l.limits.Rate, l.burst(), now)

	// Check the node's limit first, since it protects the node; the others are shares.
	switch {
	case l.total >= l.limits.Total:
		return overloaded("The node has too many requests under way.", time.Second)
	case by == stranger && l.unknown >= max(1, l.limits.Total/2):
		return overloaded("Too many requests without a credential are under way: send an API key, or try again.", time.Second)
	case c.running >= l.limits.PerClient:
		return overloaded("Too many of your requests are under way.", time.Second)

	// Retry when the missing part of a token has come.
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

// leave ends a request of a client, which enter began.
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

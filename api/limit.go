package api

import (
	"cmp"
	"sync"
	"time"
)

// Limits bound the load by clients. A zero field means the value of [DefaultLimits], but for Rate.
// All strangers, who send no valid credential, together use at most half of Total, Connections and
// Memory. The operator's socket has no limits.
type Limits struct {
	Rate        float64 // requests a second of one client, with bursts of twice as many; 0: no limit. A client is a key, or without a key an address or /64 of IPv6
	PerClient   int     // running requests of one client
	Total       int     // running requests; at most seven eighths of Connections
	Connections int     // open connections
	PerAddress  int     // open connections of one network; 0: half of Connections
	Memory      int64   // bytes of request bodies and of unsent answers, together
}

// DefaultLimits let one client use all processors of a node, but not all its memory. Connections and
// Memory suit a machine with 4 GiB and a process with 4,096 descriptors.
func DefaultLimits() Limits {
	return Limits{PerClient: 512, Total: 2048, Connections: 2048, Memory: 1 << 30}
}

// withDefaults replaces zero fields by the defaults, and keeps Total below Connections.
func (l Limits) withDefaults() Limits {
	defaults := DefaultLimits()
	l.PerClient = cmp.Or(l.PerClient, defaults.PerClient)
	l.Total = cmp.Or(l.Total, defaults.Total)
	l.Connections = cmp.Or(l.Connections, defaults.Connections)
	l.PerAddress = cmp.Or(l.PerAddress, max(1, l.Connections/2))

	// At least an eighth of the connections run no request, so a new one always finds one to close.
	l.Total = min(l.Total, max(1, l.Connections-l.Connections/8))
	l.Memory = cmp.Or(l.Memory, defaults.Memory)
	return l
}

// standing is how far a client is identified.
type standing uint8

const (
	stranger standing = iota // no valid credential
	sender                   // a stranger whose body is being read; the limits of memory treat it apart
	holder                   // a valid credential
	operator                 // connected by the socket in the data directory
)

// limiter limits the running requests of all clients, and the running requests and the rate of each
// client. It forgets clients that were idle for a minute.
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
	tokens  float64   // requests that the client may begin now
	filled  time.Time // when tokens were last added
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.withDefaults(), now: now, clients: map[string]*client{}}
}

// enter admits a request of a client, or returns a failure with the time to retry. The caller must
// call leave when an admitted request ends. The operator is always admitted.
func (l *limiter) enter(name string, by standing) *failure {
	if by == operator {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	// A new client may begin a burst of requests.
	now := l.now()
	l.sweep(now)
	c := l.clients[name]
	if c == nil {
		c = &client{tokens: l.burst(), filled: now}
		l.clients[name] = c
	}

	c.fill(l.limits.Rate, l.burst(), now)

	// Check the limit of all requests first, because it protects the node. The other limits divide it.
	switch {
	case l.total >= l.limits.Total:
		return overloaded("The node has too many requests under way.", time.Second)
	case by == stranger && l.unknown >= max(1, l.limits.Total/2):
		return overloaded("Too many requests without a credential are under way: send an API key, or try again.", time.Second)
	case c.running >= l.limits.PerClient:
		return overloaded("Too many of your requests are under way.", time.Second)

	// The client may retry once it has a whole token.
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

// leave ends a request that enter has admitted.
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

// sweep forgets clients that were idle for a minute. It does so once a minute.
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

package api

import (
	"sync"
	"time"
)

// Limits bound what one client may ask of a node at a time. Zero fields take
// the values of [DefaultLimits], except Rate.
type Limits struct {
	Rate      float64 // requests a second of one client (a key, or an address without one), with a burst of twice as many; 0: no limit
	PerClient int     // requests of one client under way
	Total     int     // requests under way
}

// DefaultLimits let one client use a node to its full and still keep a
// runaway script from taking all of its memory.
func DefaultLimits() Limits { return Limits{PerClient: 512, Total: 2048} }

// limiter counts by client. What it knows of a client that has nothing under
// way and a full bucket is forgotten.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex // guards the fields below
	total   int
	clients map[string]*client
	swept   time.Time
}

type client struct {
	running int
	tokens  float64
	filled  time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	usual := DefaultLimits()
	if l.PerClient == 0 {
		l.PerClient = usual.PerClient
	}
	if l.Total == 0 {
		l.Total = usual.Total
	}
	return &limiter{limits: l, now: now, clients: map[string]*client{}}
}

// enter admits a request of a client, or says after how long to try again.
// An admitted request has to leave.
func (l *limiter) enter(name string) *failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	c := l.clients[name]
	if c == nil {
		c = &client{tokens: l.burst(), filled: now}
		l.clients[name] = c
	}
	c.fill(l.limits.Rate, l.burst(), now)
	switch {
	case l.total >= l.limits.Total:
		return overloaded("The node has too many requests under way.", time.Second)
	case c.running >= l.limits.PerClient:
		return overloaded("Too many of your requests are under way.", time.Second)
	case l.limits.Rate > 0 && c.tokens < 1:
		return overloaded("Too many requests.", time.Duration((1-c.tokens)/l.limits.Rate*float64(time.Second)))
	}
	c.tokens--
	c.running++
	l.total++
	return nil
}

func (l *limiter) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
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

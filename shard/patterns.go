package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/shard/query"
)

// patterns caches recently compiled patterns, because users often repeat a search with another page
// or filter. A cached automaton already has the states that earlier searches needed.
type patterns struct {
	mu     sync.Mutex // guards the fields below
	byText map[query.Text]*pattern
	ring   []query.Text // the keys of byText, in the order in which they came
	oldest int          // index in ring of the oldest key, which add replaces next
}

// Limits of the cache.
const (
	maxCachedPatterns     = 64  // patterns
	maxCachedPatternBytes = 200 // bytes of the longest pattern
)

// compile returns a pattern for one search. Searches share the states of the automaton, but
// stopping one of them does not stop the others.
func (k *patterns) compile(t query.Text) (*pattern, error) {
	if k == nil || len(t.Pattern) > maxCachedPatternBytes {
		return compile(t)
	}
	k.mu.Lock()
	first := k.byText[t]
	k.mu.Unlock()

	// Compile without the lock. If two searches compile the same pattern, add keeps the first.
	if first == nil {
		var err error
		if first, err = compile(t); err != nil {
			return nil, err
		}
		k.add(t, first)
	}

	c := *first
	c.m = first.m.Again()
	return &c, nil
}

// add caches a pattern in place of the oldest one.
func (k *patterns) add(t query.Text, c *pattern) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.byText[t] != nil:
		return
	case k.byText == nil:
		k.byText = map[query.Text]*pattern{}
	}

	if len(k.ring) < maxCachedPatterns {
		k.ring = append(k.ring, t)
	} else {
		delete(k.byText, k.ring[k.oldest])
		k.ring[k.oldest] = t
		k.oldest = (k.oldest + 1) % maxCachedPatterns
	}
	k.byText[t] = c
}

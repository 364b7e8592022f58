package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/shard/query"
)

// patterns caches recently compiled patterns, because users often repeat a search with another page
// or filter. A cached automaton already has the states that earlier searches needed.
type patterns struct {
	mu   sync.Mutex // guards the fields below
	all  map[query.Text]*pattern
	list []query.Text // a ring with the keys of all, in the order in which they came
	next int          // index in list of the oldest key, which is replaced next
}

// Limits of the cache.
const (
	keepPatterns = 64  // patterns
	keepPattern  = 200 // bytes of the longest pattern
)

// compile returns a pattern for one search. Searches share the states of the automaton, but
// stopping one of them does not stop the others.
func (k *patterns) compile(t query.Text) (*pattern, error) {
	if k == nil || len(t.Pattern) > keepPattern {
		return compile(t)
	}
	k.mu.Lock()
	first := k.all[t]
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
	case k.all[t] != nil:
		return
	case k.all == nil:
		k.all = map[query.Text]*pattern{}
	}

	if len(k.list) < keepPatterns {
		k.list = append(k.list, t)
	} else {
		delete(k.all, k.list[k.next])
		k.list[k.next] = t
		k.next = (k.next + 1) % keepPatterns
	}
	k.all[t] = c
}

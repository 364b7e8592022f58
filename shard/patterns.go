package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/shard/query"
)

// patterns remembers the patterns compiled lately. The same search comes again
// and again, with another page or filter, and an automaton that has seen the text
// need not learn its states anew.
type patterns struct {
	mu   sync.Mutex // guards the fields below
	all  map[query.Text]*pattern
	list []query.Text // a ring of the keys of all, in the order in which they came
	next int          // index in list of the oldest, which goes next
}

// The bounds of what is remembered.
const (
	keepPatterns = 64
	keepPattern  = 200 // bytes
)

// compile returns a pattern for one search. Searches share what the automaton has
// learned; the copy has a stop of its own.
func (k *patterns) compile(t query.Text) (*pattern, error) {
	if k == nil || len(t.Pattern) > keepPattern {
		return compile(t)
	}
	k.mu.Lock()
	first := k.all[t]
	k.mu.Unlock()

	// Outside of the lock: two may compile the same, and the later copy is dropped.
	if first == nil {
		var err error
		if first, err = compile(t); err != nil {
			return nil, err
		}
		k.add(t, first)
	}

	// What was learned is shared, the stop is not: one search must not end another.
	c := *first
	c.m = first.m.Again()
	return &c, nil
}

// add remembers a pattern in place of the oldest.
func (k *patterns) add(t query.Text, c *pattern) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.all[t] != nil:
		return
	case k.all == nil:
		k.all = map[query.Text]*pattern{}
	}

	// A ring: next is the oldest.
	if len(k.list) < keepPatterns {
		k.list = append(k.list, t)
	} else {
		delete(k.all, k.list[k.next])
		k.list[k.next] = t
		k.next = (k.next + 1) % keepPatterns
	}
	k.all[t] = c
}

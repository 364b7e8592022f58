package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/shard/query"
)

// patterns remembers what was compiled lately. The same search comes again and
// again, with another page or filter, and an automaton that has met the text
// need not learn its states anew.
type patterns struct {
	mu   sync.Mutex // guards the fields below
	all  map[query.Text]*pattern
	list []query.Text // as they came; the oldest goes
	next int
}

// The bounds of what is remembered.
const (
	keepPatterns = 64
	keepPattern  = 200 // bytes
)

// compile gives a pattern for one search.
func (k *patterns) compile(t query.Text) (*pattern, error) {
	if k == nil || len(t.Pattern) > keepPattern {
		return compile(t)
	}
	k.mu.Lock()
	first := k.all[t]
	k.mu.Unlock()
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

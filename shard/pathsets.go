package shard

import (
	"context"
	"sync/atomic"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/query"
)

// pathSets caches which rows of a skipList match a pattern of paths, because many searches use the
// same patterns, for example to exclude tests.
type pathSets struct {
	cache   *lru.Cache[pathSetKey, docSet]
	matched atomic.Int64 // number of paths that were matched with a pattern; for tests
}

// pathSetKey identifies a set by its shard file and its pattern.
type pathSetKey struct {
	shard FileID
	text  query.Text
}

// pathSetBytes is the memory for all sets. For a million files kept by name only, a set takes 125
// KB.
const pathSetBytes = 16 << 20

func newPathSets() *pathSets { return &pathSets{cache: lru.New[pathSetKey, docSet](pathSetBytes)} }

// matchingRows returns the rows whose paths match a pattern. If ctx ends, some may be missing.
func (c *pathSets) matchingRows(ctx context.Context, s *shard, p *pattern) docSet {
	id, _, _ := ParseFileName(s.f.Name())
	key := pathSetKey{id, p.text}
	if set, ok := c.cache.Get(key); ok {
		return set
	}

	l, names := s.skipList(), newNameSet(p, s)
	if !names.matchAllPaths(s) {
		c.matched.Add(int64(len(l.rows)))
	}
	set := make(docSet, l.words)
	for i := range l.classes {
		k := &l.classes[i]
		for at, o := range l.rows[k.first : k.first+k.rows] {
			if at&255 == 255 && ctx.Err() != nil {
				return set
			}
			if names.has(s, s.occPath.At(int(o))) {
				set.add(k.word*64 + at)
			}
		}
	}

	// A matcher that was stopped may have missed a path: do not cache its result.
	if ctx.Err() == nil {
		c.cache.Put(key, set, int64(8*len(set)+len(p.text.Pattern)+lru.Cost))
	}
	return set
}

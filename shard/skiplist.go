package shard

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/query"
)

// skipList is the places of a shard that are kept by name only. Rows of one repository
// and one mask are a class; sets of rows give each class whole words.
//
//	class    repo 0, mask 0        repo 0, mask 3    repo 2, mask 0
//	rows     0 ... 69              70 71             72
//	words    0 and 1               2                 3
//
// It is immutable.
type skipList struct {
	rows    []uint32 // the occurrence of each
	classes []skipClass
	words   int // of a set of rows
}

// skipClass is rows of one repository and one mask, as the shard numbers both.
type skipClass struct {
	repo, mask  int
	first, rows int // in skipList.rows
	word        int // where its bits begin in a set of rows
}

// words is how many words of a set the class has.
func (k *skipClass) words() int { return (k.rows + 63) / 64 }

// last is the bits of its last word that are rows.
func (k *skipClass) last() uint64 { return ^uint64(0) >> (-k.rows & 63) }

// skipList returns the places that are kept by name only. They are listed when they are
// first asked for, and take four bytes each.
func (s *shard) skipList() *skipList {
	s.listOnce.Do(func() { s.list = s.listSkips() })
	return s.list
}

// listSkips is skipList's work.
func (s *shard) listSkips() *skipList {
	l := &skipList{}
	if !slices.Contains(s.m.languages, SkippedLanguage) {
		return l
	}
	for _, d := range s.skipped() {
		for o := s.docOccur.At(int(d)); o < s.docOccur.At(int(d)+1); o++ {
			l.rows = append(l.rows, o)
		}
	}

	slices.SortFunc(l.rows, func(a, b uint32) int {
		i, j := int(a), int(b)
		return cmp.Or(cmp.Compare(s.occRepo.At(i), s.occRepo.At(j)), cmp.Compare(s.occMask.At(i), s.occMask.At(j)), cmp.Compare(a, b))
	})

	for i, o := range l.rows {
		repo, mask := int(s.occRepo.At(int(o))), int(s.occMask.At(int(o)))
		n := len(l.classes)
		if n == 0 || l.classes[n-1].repo != repo || l.classes[n-1].mask != mask {
			if n > 0 {
				l.words += l.classes[n-1].words()
			}
			l.classes = append(l.classes, skipClass{repo: repo, mask: mask, first: i, word: l.words})
			n++
		}
		l.classes[n-1].rows++
	}
	if n := len(l.classes); n > 0 {
		l.words += l.classes[n-1].words()
	}
	return l
}

// bitOf returns the bit of an occurrence in sets of rows.
func (l *skipList) bitOf(s *shard, o uint32) (bit int, ok bool) {
	repo, mask := int(s.occRepo.At(int(o))), int(s.occMask.At(int(o)))
	i, ok := slices.BinarySearchFunc(l.classes, skipClass{repo: repo, mask: mask}, func(a, b skipClass) int {
		return cmp.Or(a.repo-b.repo, a.mask-b.mask)
	})
	if !ok {
		return 0, false
	}
	k := &l.classes[i]
	at, ok := slices.BinarySearch(l.rows[k.first:k.first+k.rows], o)
	return k.word*64 + at, ok
}

// changedSkip is a row whose revisions a later generation changed.
type changedSkip struct {
	bit, repo int
	mask      uint64
}

// changedSkips returns the rows that repositories of the group read differently than the
// shard has them, and those of them that are not dead. nil for no rows.
func (m *member) changedSkips(l *skipList) (rows docSet, alive []changedSkip) {
	j, s := m.joined, m.sh
	j.skipOnce.Do(func() {
		for i, r := range j.repos {
			if r == nil {
				continue
			}
			for o, mask := range r.changed {
				bit, ok := l.bitOf(s, o)
				if !ok || int(s.occRepo.At(int(o))) != i {
					continue
				}
				if j.changed == nil {
					j.changed = make(docSet, l.words)
				}
				j.changed.add(bit)
				if mask != 0 {
					j.kept = append(j.kept, changedSkip{bit, i, mask})
				}
			}
		}
	})
	return j.changed, j.kept
}

// pathSets remembers which rows of which skipList a pattern of paths matches: people
// leave out tests or look at one directory in search after search.
type pathSets struct {
	cache   *lru.Cache[pathSetKey, docSet]
	matched atomic.Int64 // paths that a pattern was asked about, in all
}

// pathSetKey names a set by the bytes of its shard and the pattern.
type pathSetKey struct {
	shard FileID
	text  query.Text
}

// pathSetBytes is the memory for all sets: of a million files kept by name only, a set
// takes 125 KB.
const pathSetBytes = 16 << 20

func newPathSets() *pathSets { return &pathSets{cache: lru.New[pathSetKey, docSet](pathSetBytes)} }

// of returns the rows whose paths a pattern matches. If ctx ends, some may be missing.
func (c *pathSets) of(ctx context.Context, s *shard, p *pattern) docSet {
	id, _, _ := ParseFileName(s.f.Name())
	key := pathSetKey{id, p.text}
	if set, ok := c.cache.Get(key); ok {
		return set
	}

	l := s.skipList()
	c.matched.Add(int64(len(l.rows)))
	set := make(docSet, l.words)
	for i := range l.classes {
		k := &l.classes[i]
		for at, o := range l.rows[k.first : k.first+k.rows] {
			if at&255 == 255 && ctx.Err() != nil {
				return set
			}
			if p.m.Matches(s.path(int(s.occPath.At(int(o))))) {
				set.add(k.word*64 + at)
			}
		}
	}

	// A matcher that was stopped may have overlooked something.
	if ctx.Err() == nil {
		c.cache.Put(key, set, int64(8*len(set)+len(p.text.Pattern)+lru.Cost))
	}
	return set
}

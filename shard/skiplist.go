package shard

import (
	"cmp"
	"slices"
)

// skipList returns the list of occurrences without content in the index. The first call makes the
// list, which takes four bytes for each occurrence.
func (s *shard) skipList() *skipList {
	s.listOnce.Do(func() { s.list = s.listSkips() })
	return s.list
}

// listSkips makes the list of occurrences without content. Callers use skipList, which calls it only
// once.
func (s *shard) listSkips() *skipList {
	l := &skipList{}
	if !slices.Contains(s.m.languages, SkippedLanguage) {
		return l
	}
	for _, d := range s.skippedDocs() {
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

// bitOf returns the number of the bit that stands for an occurrence in sets of rows; false if it is
// not in the list.
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

// changedSkips returns the rows whose revisions a later generation has changed, and the new
// revisions of those that are not dead. rows is nil if there are none.
func (m *member) changedSkips(l *skipList) (rows docSet, alive []changedSkip) {
	j, s := m.groupView, m.sh
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
				if j.changedRows == nil {
					j.changedRows = make(docSet, l.words)
				}
				j.changedRows.add(bit)
				if mask != 0 {
					j.changedAlive = append(j.changedAlive, changedSkip{bit, i, mask})
				}
			}
		}
	})
	return j.changedRows, j.changedAlive
}

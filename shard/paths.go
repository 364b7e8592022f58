package shard

import (
	"github.com/shoalsearch/shoal/trigram"
)

// pathIndex finds the paths of a shard that a pattern may match without a look at the
// others. Paths stand in their order, so that neighbours have most of their trigrams in
// common: a block of them is one unit of postings.
//
//	arch/x86/kernel/traps.c, arch/x86/kernel/tsc.c, ...   block 17
//	arch/x86/kvm/mmu/mmu.c, ...                           block 18
//
// It is made when a large shard is first asked for a path, and takes a third of the bytes
// of the paths.
type pathIndex struct {
	post   *trigram.Index // nil where there is none: then every path is looked at
	starts []int          // first path of each block, and the number of all

	// The documents of a path, for all paths one after the other.
	docs  []uint32
	first []uint32 // where those of each path begin, and the number of all
}

// The bounds of a pathIndex.
const (
	leastPaths = 2048 // of a shard that has one
	blockBytes = 1024 // of the paths of a block, about
)

// pathIndex returns the postings of the paths.
func (s *shard) pathIndex() *pathIndex {
	s.pathOnce.Do(func() {
		s.pathPost = &pathIndex{}
		if s.m.paths < leastPaths {
			return
		}
		post, starts := blocksOf(s.m.paths, s.path)
		if post == nil {
			return
		}

		// By counting: the occurrences of a document stand together, those of a path do not.
		x := &pathIndex{post: post, starts: starts, docs: make([]uint32, s.m.occurs), first: make([]uint32, s.m.paths+1)}
		for o := range s.m.occurs {
			x.first[s.occPath.At(o)]++
		}
		for p := range s.m.paths {
			x.first[p+1] += x.first[p]
		}
		for d := range s.m.documents {
			for o, end := int(s.docOccur.At(d)), int(s.docOccur.At(d+1)); o < end; o++ {
				p := s.occPath.At(o)
				x.first[p]--
				x.docs[x.first[p]] = uint32(d)
			}
		}
		s.pathPost = x
	})
	return s.pathPost
}

// blocksOf makes the postings of n paths, and says where the blocks begin. It returns nil
// where the paths are too many for one segment.
func blocksOf(n int, path func(int) []byte) (post *trigram.Index, starts []int) {
	var segments [][]byte
	w := trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		var segment []byte
		for _, p := range parts {
			segment = append(segment, p...)
		}
		segments = append(segments, segment)
		return nil
	}})
	defer w.Close()

	var block []byte
	for p := range n {
		if len(block) == 0 {
			starts = append(starts, p)
		}

		// A path begins and ends as a document does: behind one line break, before two.
		block = append(append(block, path(p)...), '\n', '\n')
		if len(block) < blockBytes && p < n-1 {
			continue
		}

		// Of a block with a very long path only the first unit would count.
		if _, units, err := w.Add(block, 0); err != nil || units > 1 || len(starts) > trigram.SegmentUnits {
			return nil, nil
		}
		block = block[:0]
	}

	if w.Finish() != nil {
		return nil, nil
	}
	post, err := trigram.Open(segments, nil)
	if err != nil {
		return nil, nil
	}
	return post, append(starts, n)
}

// candidates calls a function for each path that a formula may be true of. It reports
// false, and has called it for none, where these are most of them.
func (x *pathIndex) candidates(f *trigram.Formula, each func(path int)) bool {
	if x.post == nil {
		return false
	}
	var scratch trigram.Scratch
	var blocks trigram.Bitmap
	n, err := x.post.Search(0, f, nil, &scratch, &blocks)
	if err != nil || n > len(x.starts)/4 {
		return false
	}
	for b := blocks.Next(0); b >= 0; b = blocks.Next(b + 1) {
		for p := x.starts[b]; p < x.starts[b+1]; p++ {
			each(p)
		}
	}
	return true
}

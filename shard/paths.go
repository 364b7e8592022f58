package shard

import "github.com/shoalsearch/shoal/trigram"

// pathIndex finds the paths of a shard that a pattern may match, without reading all paths. Paths
// are sorted, so that neighbours share most of their trigrams: a block of paths is one unit of
// postings.
//
//	arch/x86/kernel/traps.c, arch/x86/kernel/tsc.c, ...   block 17
//	arch/x86/kvm/mmu/mmu.c, ...                           block 18
//
// The first search for a path in a large shard builds it. It takes a third of the bytes of the
// paths. If the indexes of all shards take pathIndexBytes, no more are built.
type pathIndex struct {
	post   *trigram.Index // nil means no index: every path must be matched
	starts []int          // first path of each block, then the number of paths

	// docs lists the documents of each path, path after path.
	docs     []uint32
	docStart []uint32 // where each path begins in docs, then the length of docs

	bytes int64 // of memory that the index takes
}

// Limits of a pathIndex.
const (
	minIndexedPaths = 2048 // paths; a shard with fewer has no index
	blockBytes      = 1024 // bytes of paths in a block, about

	pathIndexBytes = 128 << 20 // of the indexes of a set, about five million files
)

// pathIndex returns the index of the paths. It builds the index on first use if the set has room.
// It never drops the index of another shard, because then indexes would be built again and again.
func (s *shard) pathIndex() *pathIndex {
	s.pathMu.Lock()
	defer s.pathMu.Unlock()
	if s.pathPost == nil {
		x := s.buildPathIndex()
		if x.bytes > 0 && s.pathBytes.Add(x.bytes) > pathIndexBytes {
			s.pathBytes.Add(-x.bytes)
			x = &pathIndex{}
		}
		s.pathPost = x
	}
	return s.pathPost
}

// dropPathIndex frees the memory of the index. The caller closes the shard, so nobody reads it.
func (s *shard) dropPathIndex() {
	s.pathMu.Lock()
	defer s.pathMu.Unlock()
	if s.pathPost != nil && s.pathPost.bytes > 0 {
		s.pathBytes.Add(-s.pathPost.bytes)
		s.pathPost = nil
	}
}

// buildPathIndex indexes the paths of a shard. The index is empty if the shard has few paths, or if
// there is no memory left for it.
func (s *shard) buildPathIndex() *pathIndex {
	if s.m.paths < minIndexedPaths || s.pathBytes.Load() >= pathIndexBytes {
		return &pathIndex{}
	}
	segments, starts := indexPaths(s.m.paths, s.path)
	if segments == nil {
		return &pathIndex{}
	}
	post, err := trigram.Open(segments, nil)
	if err != nil {
		return &pathIndex{}
	}

	x := &pathIndex{post: post, starts: starts, docs: make([]uint32, s.m.occurs), docStart: make([]uint32, s.m.paths+1)}
	x.bytes = int64(8*len(starts) + 4*len(x.docs) + 4*len(x.docStart))
	for _, segment := range segments {
		x.bytes += int64(len(segment))
	}

	// Sort the documents by path by counting: occurrences are sorted by document.
	for o := range s.m.occurs {
		x.docStart[s.occPath.At(o)]++
	}
	for p := range s.m.paths {
		x.docStart[p+1] += x.docStart[p]
	}
	for d := range s.m.documents {
		for o, end := int(s.docOccur.At(d)), int(s.docOccur.At(d+1)); o < end; o++ {
			p := s.occPath.At(o)
			x.docStart[p]--
			x.docs[x.docStart[p]] = uint32(d)
		}
	}
	return x
}

// indexPaths makes the postings of n paths, and returns where the blocks begin. It returns nil if
// the paths do not fit into one segment.
func indexPaths(n int, path func(int) []byte) (segments [][]byte, starts []int) {
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

		// As at the ends of a document, a newline precedes each path and two follow it.
		block = append(append(block, path(p)...), '\n', '\n')
		if len(block) < blockBytes && p < n-1 {
			continue
		}

		// With a very long path, a block would take several units: then there is no index.
		if _, units, err := w.Add(block, 0); err != nil || units > 1 || len(starts) > trigram.SegmentUnits {
			return nil, nil
		}
		block = block[:0]
	}

	if w.Finish() != nil {
		return nil, nil
	}
	return segments, append(starts, n)
}

// eachCandidate calls each with every path that may satisfy a formula. It returns false, without a
// call, if there is no index or more than a quarter of its blocks may satisfy the formula.
func (x *pathIndex) eachCandidate(f *trigram.Formula, each func(path int)) bool {
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

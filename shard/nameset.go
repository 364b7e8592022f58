package shard

// nameSet caches which paths of a shard match a pattern. One goroutine fills it in bind; afterwards
// many goroutines read it.
type nameSet struct {
	p              *pattern
	known, matches []uint64 // a bit for each path: whether the result is known, and the result
	complete       bool     // the result is known for every path
}

// newNameSet returns the set for the paths of a shard in which no path is known yet.
func newNameSet(p *pattern, s *shard) *nameSet {
	words := (s.m.paths + 63) / 64
	bits := make([]uint64, 2*words)
	return &nameSet{p: p, known: bits[:words], matches: bits[words:]}
}

// has reports whether the pattern matches in a path.
func (n *nameSet) has(s *shard, path uint32) bool {
	if bit := uint64(1) << (path & 63); n.known[path>>6]&bit != 0 {
		return n.matches[path>>6]&bit != 0
	}
	return n.p.m.Matches(s.path(int(path)))
}

// matchPath reports whether the pattern matches in a path, and caches the result.
func (n *nameSet) matchPath(s *shard, path uint32) bool {
	yes := n.has(s, path)
	bit := uint64(1) << (path & 63)

	n.known[path>>6] |= bit
	if yes {
		n.matches[path>>6] |= bit
	}
	return yes
}

// matchAllPaths matches the pattern with the candidates of the path index, after which the result
// for every path is known. It returns false, and knows nothing more, if the shard has no path index
// or the index gives too many candidates.
func (n *nameSet) matchAllPaths(s *shard) bool {
	if n.complete {
		return true
	}
	n.complete = s.pathIndex().eachCandidate(n.p.formula, func(p int) {
		if n.p.m.Matches(s.path(p)) {
			n.matches[p>>6] |= 1 << (p & 63)
		}
	})
	if n.complete {
		for i := range n.known {
			n.known[i] = ^uint64(0)
		}
	}
	return n.complete
}

// documents returns the documents with a matching path. The caller must have called matchAllPaths
// with success.
func (n *nameSet) documents(s *shard) docSet {
	set, x := newDocSet(s.m.documents), s.pathIndex()
	yes := docSet(n.matches)
	for p := yes.next(0, s.m.paths); p >= 0; p = yes.next(p+1, s.m.paths) {
		for _, d := range x.docs[x.docStart[p]:x.docStart[p+1]] {
			set.add(int(d))
		}
	}
	return set
}

package shard

// nameSet caches which paths of a shard match a pattern. One goroutine fills it while it binds a
// plan; afterwards many goroutines read it.
type nameSet struct {
	p              *pattern
	known, matches []uint64 // a bit for each path
	all            bool     // every path is known
}

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

// learn reports whether the pattern matches in a path, and caches the answer.
func (n *nameSet) learn(s *shard, path uint32) bool {
	yes := n.has(s, path)
	bit := uint64(1) << (path & 63)

	n.known[path>>6] |= bit
	if yes {
		n.matches[path>>6] |= bit
	}
	return yes
}

// learnAll matches the pattern with all paths that the path index allows. If it reports true, the
// answer for every path is known.
func (n *nameSet) learnAll(s *shard) bool {
	if n.all {
		return true
	}
	n.all = s.pathIndex().candidates(n.p.formula, func(p int) {
		if n.p.m.Matches(s.path(p)) {
			n.matches[p>>6] |= 1 << (p & 63)
		}
	})
	if n.all {
		for i := range n.known {
			n.known[i] = ^uint64(0)
		}
	}
	return n.all
}

// documents returns the documents with a matching path. The caller must have called learnAll with
// success.
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

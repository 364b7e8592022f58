package trigram

// maxFactor is the greatest number of classes in a factor. A factor that begins at the last byte of
// a unit must still lie in the window of the unit.
const maxFactor = 56

// maxTriple is the greatest number of trigrams that a search looks up for one position of a factor.
const maxTriple = 4096

// pairCost is the number of trigrams that begin with the same two bytes, about.
const pairCost = 64

// minRunClasses is the least number of bytes of a run that have several possible values. With fewer
// the run has so many single bytes that a factor of these rules out more.
const minRunClasses = 4

// replaceAnchors returns the sequence without anchors. If edges is set, it turns the line anchors
// at the start and the end of the sequence into newlines: `a$` becomes an a and a newline or
// carriage return, because a line may end in "\r\n". It drops all other anchors, because in the
// middle of a match nothing is known about their surroundings. In place of a dropped $ it puts a
// gap for a carriage return.
func (s seq) replaceAnchors(edges bool) seq {
	first, last := 0, len(s)
	for first < last && s[first].kind == elemBOL {
		first++
	}
	for last > first && s[last-1].kind == elemEOL {
		last--
	}

	// A sequence that begins with ^ begins with the newline before its line.
	var newline elem
	newline.set.add('\n')
	out := make(seq, 0, len(s))
	if first > 0 && edges {
		out = append(out, newline)
	}

	// Drop anchors inside the sequence; a $ becomes a gap.
	for _, e := range s[first:last] {
		switch e.kind {
		case elemBOL:
		case elemEOL:
			out = append(out, elem{kind: elemGap, set: e.set})
		default:
			out = append(out, e)
		}
	}

	// A sequence that ends with $ ends with the newline after its line.
	if last < len(s) && edges {
		end := newline
		end.set.add('\r')
		out = append(out, end)
	}
	return out
}

// makeNode returns the condition of a sequence: its factors, runs and alternatives in the order of
// their starts. edges is as in replaceAnchors.
func (s seq) makeNode(edges bool) *node {
	s = s.replaceAnchors(edges)

	var subs []*node
	for i := 0; i < len(s); {
		switch s[i].kind {
		case elemAlt:
			if n := makeOr(s[i].alts, false); n != nil {
				subs = append(subs, n)
			}
			i++

		// Collect the bytes up to the next gap or alternative.
		case elemByte:
			end := i
			for end < len(s) && s[end].kind == elemByte {
				end++
			}
			subs = append(subs, s.byteConditions(i, end)...)
			i = end
		default:
			i++
		}
	}
	return makeSeq(subs)
}

// byteConditions returns the conditions of the elements [i, end), which are single bytes or
// classes: its factors and its longest run, in the order of their starts. Factors overlap by two
// bytes, so that no trigram is lost. The first condition starts at i if any condition does.
func (s seq) byteConditions(i, end int) []*node {
	var subs []*node
	run, runAt := s.bestRun(i, min(end, i+maxFactor-2))

	// Cut factors, each starting two bytes before the end of the one before.
	for at := i; ; at += maxFactor - 2 {
		to := min(at+maxFactor, end)

		f := s.makeFactor(at, to)
		if f != nil && !f.hasExactTrigram() && run != nil && runAt == i {
			f = nil // the run costs less and rules out more
		}
		if f != nil {
			subs = append(subs, f)
		}

		if at == i && run != nil {
			subs = append(subs, run)
		}

		if to == end {
			return subs
		}
	}
}

// makeFactor returns one factor for the elements [i, end), or nil if it rules out too little or
// costs too much. It extends a short factor by the bytes that may follow.
func (s seq) makeFactor(i, end int) *node {
	n := &node{op: opFactor}
	for _, e := range s[i:end] {
		n.set = append(n.set, e.set.folded())
		n.special = n.special || e.special
	}

	// Without a trigram of single bytes the factor rules out little: add what may follow.
	if !n.hasExactTrigram() {
		n.addFollowing(s, end)
	}

	n.trimToLookups()
	if len(n.set) == 0 {
		return nil
	}
	return n
}

// hasExactTrigram reports whether the factor has a trigram of three single bytes.
func (n *node) hasExactTrigram() bool {
	for i := 0; i+3 <= len(n.set); i++ {
		if n.countTrigrams(i) == 1 {
			return true
		}
	}
	return false
}

// countTrigrams returns the number of possible trigrams at position i: for [ab]c[0-9] they are 20.
func (n *node) countTrigrams(i int) int {
	return n.set[i].size() * n.set[i+1].size() * n.set[i+2].size()
}

// addFollowing adds up to two classes of bytes that may follow position at: the union over all ways
// through gaps. In `[0-9]\.[0-9]+x` the class [0-9x] follows the factor of the first three
// elements.
func (n *node) addFollowing(s seq, at int) {
	// states are the possible next positions. After a gap, both the gap and its successor are
	// possible.
	states := []int{at}
	for range 2 {
		var set byteSet
		var next []int
		for len(states) > 0 {
			p := states[0]
			states = states[1:]
			if p == len(s) || s[p].kind == elemAlt {
				return
			}

			set = set.or(s[p].set.folded())
			n.special = n.special || s[p].special
			if s[p].kind == elemGap {
				next = append(next, p)
				states = append(states, p+1)
				continue
			}

			next = append(next, p+1)
		}

		n.set = append(n.set, set)
		states = dedup(next)
	}
}

// dedup returns the distinct members of s, in order.
func dedup(s []int) []int {
	var out []int
	seen := make(map[int]bool)
	for _, x := range s {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

const (
	// A search looks up a further position with at most cheapTriple trigrams if the cheapest
	// position has single bytes, and with at most someTriple if the cheapest one has classes.
	cheapTriple = 32
	someTriple  = 256
)

// trimToLookups chooses which trigrams of the factor to look up, and cuts the factor down to them.
// If two bytes are cheaper than any trigram, it keeps only these two. Of a factor that has neither
// it keeps only the first byte, if that is a single byte with an escape as class, because such a
// byte is rare. Otherwise it empties the factor.
func (n *node) trimToLookups() {
	best, cost := -1, maxTriple+1 // the cheapest position of three bytes
	for i := 0; i+3 <= len(n.set); i++ {
		if c := n.countTrigrams(i); c < cost {
			best, cost = i, c
		}
	}

	// The trigrams that begin with the same two bytes are a range of the dictionary.
	pair := -1 // the position of two bytes, if that is cheaper
	for i := 0; i+2 <= len(n.set); i++ {
		if c := pairCost * n.set[i].size() * n.set[i+1].size(); c < cost {
			pair, cost = i, c
		}
	}

	switch {
	case pair >= 0:
		n.set = n.set[pair : pair+2]
	case best >= 0:
		n.pickPositions(best, cost)
	case len(n.set) > 0 && n.set[0].size() == 1 && !isText(int(n.set[0].min())):
		n.set = n.set[:1]
	default:
		n.set = nil
	}
}

// pickPositions chooses the positions to look up: best, which is the cheapest, and each other one
// with at most cheapTriple or someTriple trigrams. cost is the number of trigrams at best. It cuts
// the factor down to the bytes of these positions.
func (n *node) pickPositions(best, cost int) {
	limit := someTriple
	if cost == 1 {
		limit = cheapTriple
	}

	from, to := best, best
	for i := 0; i+3 <= len(n.set); i++ {
		if n.countTrigrams(i) <= limit || i == best {
			n.picks = append(n.picks, i)
			from, to = min(from, i), max(to, i)
		}
	}

	// The cut factor begins at from, so count the positions from there.
	for i := range n.picks {
		n.picks[i] -= from
	}
	n.set = n.set[from : to+3]
}

// bestRun returns the longest run of the smallest class that begins at one of the elements
// [i, end), and where it begins; nil if there is none. The run may go on over gaps.
func (s seq) bestRun(i, end int) (best *node, at int) {
	// A run of an earlier class rules out more than any run of a later class.
	for class, set := range runSets {
		for j := i; j < end; j++ {
			if n := s.makeRun(j, class, set); n != nil && (best == nil || n.count > best.count) {
				best, at = n, j
			}
		}
		if best != nil {
			return best, at
		}
	}
	return nil, 0
}

// makeRun returns the run of a class that begins at element i; set has the bytes of the class. It
// returns nil if the run is shorter than minRun or has fewer than minRunClasses.
func (s seq) makeRun(i, class int, set byteSet) *node {
	count, classes, special := 0, 0, false
	for _, e := range s[i:] {
		// A gap does not make the run longer but continues it. An alternative or an anchor ends it.
		if e.kind > elemGap || !e.set.isSubsetOf(set) {
			break
		}

		special = special || e.special
		if e.kind == elemByte {
			count++
			if e.set.folded().size() > 1 {
				classes++
			}
		}
	}

	if classes < minRunClasses || count < minRun[class] {
		return nil
	}
	return &node{op: opRun, class: class, count: min(count, maxRun), special: special}
}

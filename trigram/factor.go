package trigram

// maxFactor is the most classes of a factor. It begins at the latest at the last byte
// a unit owns and must lie in the window.
const maxFactor = 56

// maxTriple is the most trigrams that are worth looking up for one position of a factor.
const maxTriple = 4096

// anchored turns the line anchors at the edges of a sequence into newlines: `a$` is
// followed by one, or by the carriage return of a line that ends in "\r\n". All others
// are dropped, since in the middle of a match nothing is known of what stands around
// them; such a $ leaves room for a carriage return.
func (s seq) anchored(edges bool) seq {
	first, last := 0, len(s)
	for first < last && s[first].kind == elemBOL {
		first++
	}
	for last > first && s[last-1].kind == elemEOL {
		last--
	}

	// A sequence that begins with ^ begins with the newline before the line.
	var newline elem
	newline.set.add('\n')
	out := make(seq, 0, len(s))
	if first > 0 && edges {
		out = append(out, newline)
	}

	// Inside of it anchors only leave room.
	for _, e := range s[first:last] {
		switch e.kind {
		case elemBOL:
		case elemEOL:
			out = append(out, elem{kind: elemGap, set: e.set})
		default:
			out = append(out, e)
		}
	}

	// And one that ends with $ ends with the newline after it.
	if last < len(s) && edges {
		end := newline
		end.set.add('\r')
		out = append(out, end)
	}
	return out
}

// node makes the condition of a sequence: its factors, runs and alternatives, in the
// order of their starts.
func (s seq) node(edges bool) *node {
	s = s.anchored(edges)

	var subs []*node
	for i := 0; i < len(s); {
		switch s[i].kind {
		case elemAlt:
			if n := orOf(s[i].alts, false); n != nil {
				subs = append(subs, n)
			}
			i++

		// Bytes in a row, up to the next gap or alternative.
		case elemByte:
			end := i
			for end < len(s) && s[end].kind == elemByte {
				end++
			}
			subs = append(subs, s.stretch(i, end)...)
			i = end
		default:
			i++
		}
	}
	return seqOf(subs)
}

// stretch returns the conditions of the bytes [i, end), in the order of their starts.
// They overlap by two bytes, so that no trigram is lost. The first condition of a
// literal starts at i if there is one there.
func (s seq) stretch(i, end int) []*node {
	var subs []*node
	run, runAt := s.bestRun(i, min(end, i+maxFactor-2))

	// Stretch after stretch, each two bytes into the one before.
	for at := i; ; at += maxFactor - 2 {
		to := min(at+maxFactor, end)

		f := s.factor(at, to)
		if f != nil && !f.exact() && run != nil && runAt == i {
			f = nil // the run is cheaper and says more
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

// factor returns the condition of the bytes [i, end), or nil if it would say nothing or
// cost too much. A short one is extended by what may follow.
func (s seq) factor(i, end int) *node {
	n := &node{op: opFactor}
	for _, e := range s[i:end] {
		n.set = append(n.set, e.set.folded())
		n.special = n.special || e.special
	}

	// Without a trigram of single bytes it says little, so what may follow is taken in.
	if !n.exact() {
		n.extend(s, end)
	}

	n.trim()
	if len(n.set) == 0 {
		return nil
	}
	return n
}

// exact reports whether the factor has a trigram of three single bytes.
func (n *node) exact() bool {
	for i := 0; i+3 <= len(n.set); i++ {
		if n.triple(i) == 1 {
			return true
		}
	}
	return false
}

// triple is the number of trigrams that are possible at position i: for [ab]c[0-9]
// they are 20.
func (n *node) triple(i int) int {
	return n.set[i].size() * n.set[i+1].size() * n.set[i+2].size()
}

// extend adds up to two classes of what may follow position at: the union over all
// ways through gaps. In `[0-9]\.[0-9]+x` the factor of the first three elements is
// followed by [0-9x].
func (n *node) extend(s seq, at int) {
	// The positions that may come next. A gap is left or entered again.
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

// dedup returns the distinct members, in order.
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
	// cheapTriple: a union of so many trigrams is worth its price beside trigrams of
	// single bytes.
	cheapTriple = 32
	// someTriple: so many are beside a cheaper union.
	someTriple = 256
)

// trim chooses what is looked up and cuts the factor down to it: every position of
// single bytes and the cheap ones; if there is none, the cheapest and some more; else
// two bytes, or one, if that is not too much.
func (n *node) trim() {
	// best is a position, or -2-i for the pair at i.
	best, cost := -1, maxTriple+1

	for i := 0; i+3 <= len(n.set); i++ {
		if c := n.triple(i); c < cost {
			best, cost = i, c
		}
	}

	// A pair is looked up as a range of the dictionary, some 60 trigrams.
	for i := 0; i+2 <= len(n.set); i++ {
		if c := 64 * n.set[i].size() * n.set[i+1].size(); c < cost {
			best, cost = -2-i, c
		}
	}

	switch {
	case best >= 0:
		n.pick(best, cost)
	case best < -1:
		n.set = n.set[-2-best : -best]
	case len(n.set) > 0 && n.set[0].size() == 1 && !isText(int(n.set[0].min())):
		n.set = n.set[:1]
	default:
		n.set = nil
	}
}

// pick chooses positions, given the cheapest one and its cost.
func (n *node) pick(best, cost int) {
	limit := someTriple
	if cost == 1 {
		limit = cheapTriple
	}

	from, to := best, best
	for i := 0; i+3 <= len(n.set); i++ {
		if n.triple(i) <= limit || i == best {
			n.picks = append(n.picks, i)
			from, to = min(from, i), max(to, i)
		}
	}

	// Positions count from the first byte that is kept.
	for i := range n.picks {
		n.picks[i] -= from
	}
	n.set = n.set[from : to+3]
}

// bestRun returns the longest run of the smallest class that begins at one of the bytes
// [i, end), gaps included, and where it begins.
func (s seq) bestRun(i, end int) (best *node, at int) {
	// A run of an earlier class says more than any run of a later one.
	for class, set := range runSets {
		for j := i; j < end; j++ {
			if n := s.run(j, class, set); n != nil && (best == nil || n.count > best.count) {
				best, at = n, j
			}
		}
		if best != nil {
			return best, at
		}
	}
	return nil, 0
}

// run returns the run of a class that begins at i, nil if it is too short to say
// anything, or so literal that a factor says more.
func (s seq) run(i, class int, set byteSet) *node {
	count, classes, special := 0, 0, false
	for _, e := range s[i:] {
		// Gaps lengthen no run, but keep it together; alternatives and anchors end it.
		if e.kind > elemGap || !e.set.within(set) {
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

	// With fewer classes than this, its single bytes make a factor that says more.
	if classes < 4 || count < shortest[class] {
		return nil
	}
	return &node{op: opRun, class: class, count: min(count, maxRun), special: special}
}

package glob

import "slices"

// resolveStars replaces each ** of a pattern by what it means, depending on its neighbours. left
// and right report whether a path segment begins before the pattern and ends after it.
//
//	a/**/b   a/ (any directories) b
//	a/**     a, or whatever is below it
//	a**      a*
func resolveStars(seq []node, left, right bool) []node {
	if !slices.ContainsFunc(seq, func(n node) bool { return n.op == opStars || n.op == opGroup }) {
		return seq
	}
	seq = pushSlashes(seq)
	var out []node
	for i := 0; i < len(seq); i++ {
		n := seq[i]
		begins := i == 0 && left || i > 0 && seq[i-1].isSlash()
		ends := i == len(seq)-1 && right || i+1 < len(seq) && seq[i+1].isSlash()

		switch {
		case n.op == opGroup:
			alts := make([][]node, len(n.alts))
			for j, alt := range n.alts {
				alts[j] = resolveStars(alt, begins, ends)
			}
			n.alts = alts
		case n.op != opStars:
		case !begins || !ends:
			n = node{op: opStar}

		// The next slash belongs to **: there may be no directory at all.
		case i+1 < len(seq):
			n = optional(node{op: opAll}, seq[i+1])
			i++
			for i+2 < len(seq) && seq[i+1].op == opStars && seq[i+2].isSlash() {
				i += 2 // **/**/ means the same as **/
			}
		case len(out) > 0 && out[len(out)-1].isSlash():
			slash := out[len(out)-1]
			out, n = out[:len(out)-1], optional(slash, node{op: opAll})
		default:
			n = node{op: opAll}
		}
		out = append(out, n)
	}
	return out
}

// pushSlashes moves slashes into groups if ** is beside them:
//
//	a/{**,b}/c   a{/**/,/b/}c
func pushSlashes(seq []node) []node {
	var out []node
	for i := 0; i < len(seq); i++ {
		n := seq[i]
		if n.op == opGroup && (n.rep == '@' || n.rep == '?') {
			if n.rep == '?' {
				n.rep, n.alts = '@', append(n.alts[:len(n.alts):len(n.alts)], nil)
			}
			before := len(out) > 0 && out[len(out)-1].isSlash() && n.starsAtEdge(func(alt []node) int { return 0 })
			after := i+1 < len(seq) && seq[i+1].isSlash() && n.starsAtEdge(func(alt []node) int { return len(alt) - 1 })

			alts := make([][]node, len(n.alts))
			for j, alt := range n.alts {
				if before {
					alts[j] = append(alts[j], out[len(out)-1])
				}
				alts[j] = append(alts[j], alt...)
				if after {
					alts[j] = append(alts[j], seq[i+1])
				}
			}
			n.alts = alts
			if before {
				out = out[:len(out)-1]
			}
			if after {
				i++
			}
		}
		out = append(out, n)
	}
	return out
}

// starsAtEdge reports whether an alternative of a group has ** at its edge. at returns the index of
// the edge.
func (n *node) starsAtEdge(at func(alt []node) int) bool {
	for _, alt := range n.alts {
		if len(alt) == 0 {
			continue
		}
		e := alt[at(alt)]
		if e.op == opStars || e.op == opGroup && (e.rep == '@' || e.rep == '?') && e.starsAtEdge(at) {
			return true
		}
	}
	return false
}

func (n *node) isSlash() bool { return n.op == opRune && n.r == '/' }

// optional returns a group that matches the nodes or nothing.
func optional(seq ...node) node { return node{op: opGroup, rep: '?', alts: [][]node{seq}} }

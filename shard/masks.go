package shard

import "github.com/shoalsearch/shoal/shard/query"

// masksOf returns the revisions of each repository for which an opRev or opRepos node holds. A pack
// has thousands of repositories, so the latest result for an opRev is cached.
func (j *groupView) masksOf(n *node) *repoMasks {
	if n.op == opRev {
		if known := j.last.Load(); known != nil && known.name == n.name {
			return known
		}
	}

	m := &repoMasks{name: n.name, bits: make([]uint64, len(j.repos)), all: true, none: true}
	for i, r := range j.repos {
		if r == nil {
			continue
		}

		if n.op == opRev {
			m.bits[i] = revisionBits(r.revisions, n.name)
		} else if n.repos.Contains(r.id) {
			m.bits[i] = ^uint64(0)
		}

		// A repository without a live occurrence in this shard has no say.
		if r.ever != 0 {
			m.all = m.all && m.bits[i]&r.always != 0
			m.none = m.none && m.bits[i]&r.ever == 0
		}
	}

	if n.op == opRev {
		j.last.Store(m)
	}
	return m
}

// revisionBits returns the bits of the revisions that a pattern of the query language names.
func revisionBits(revisions []Revision, pattern string) uint64 {
	matches := (&query.Rev{Pattern: pattern}).Matcher()
	var bits uint64
	for _, r := range revisions {
		if matches(r.Name, r.Commit, r.Name == "HEAD") {
			bits |= 1 << (r.Bit & 63)
		}
	}
	return bits
}

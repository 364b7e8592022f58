// Package coverage states what an answer covers: what the query asked for, which part of that was
// searched, and which was not, by kind and count.
//
// Only the layer that searched makes a [Coverage]; a guard test in cmd/shoal finds other makers.
// Everything that calls an answer complete, in a tool, a route, a page or a metric, must print it
// from this value.
package coverage

import (
	"cmp"
	"slices"
)

// Coverage states what an answer covers. It is immutable. The zero value means unknown, which is
// not complete.
type Coverage struct {
	made            bool
	unit            Unit
	asked, searched int
	gaps            []Gap // sorted by gravity, at most one of each kind
}

// Unit is what a search counts.
type Unit string

// The values of Unit.
const (
	Parts        Unit = "parts of the index"
	Repositories Unit = "repositories"
	Files        Unit = "files"
)

// Kind is the reason why something is not covered.
type Kind string

// The values of Kind.
const (
	Late       Kind = "time"      // time ran out
	Lost       Kind = "parts"     // Count of Of parts of the index did not answer; repositories for a viewer who may not see all of them
	Symbols    Kind = "symbols"   // the symbols of Count files are unknown
	Limit      Kind = "limit"     // there is more than the limit allows
	Pending    Kind = "pending"   // Count repositories are not indexed yet
	Revision   Kind = "revision"  // Count of Of repositories do not have the revision indexed; the others were searched completely
	NoRevision Kind = "no-commit" // none of the Of repositories has the revision indexed
	NameOnly   Kind = "name-only" // Count files that could match are kept by name only
	Failed     Kind = "failed"    // Count repositories could not be indexed
	Shallow    Kind = "history"   // the repository lacks the history before some commit, as its remote does
	Unknown    Kind = "unknown"   // nobody proved that all was searched
)

// gravity lists the kinds from the worst to the least bad. Parts without an answer come before a
// limit, and a limit before repositories that are not ready.
var gravity = []Kind{Late, Lost, Symbols, Limit, Pending, Revision, NoRevision, Shallow, Unknown, NameOnly, Failed}

// Gap is something that an answer does not cover.
type Gap struct {
	Kind  Kind   `json:"kind"`
	Count int    `json:"count,omitzero"`    // 0 = unknown
	Of    int    `json:"of,omitzero"`       // total number; 0 where it does not matter
	Ref   string `json:"revision,omitzero"` // for Revision and NoRevision
	Files []File `json:"files,omitempty"`   // the first of the Count files, at most three
}

// File is a file that was not searched.
type File struct {
	Repo string `json:"repository"`
	Path string `json:"path"`
	Why  string `json:"-"` // "" if the kind says it
}

// maxNamed is how many files a gap names.
const maxNamed = 3

// Of returns the coverage of a search that had to search asked units and searched that many
// completely.
func Of(unit Unit, asked, searched int) Coverage {
	return Coverage{made: true, unit: unit, asked: asked, searched: searched}
}

// With returns c with another gap. It joins gaps of the same kind.
func (c Coverage) With(g Gap) Coverage {
	c.gaps = slices.Clone(c.gaps)
	if i := c.index(g.Kind); i >= 0 {
		old := c.gaps[i]
		g.Count, g.Of = g.Count+old.Count, max(g.Of, old.Of)
		g.Files = slices.Concat(old.Files, g.Files)
		c.gaps = slices.Delete(c.gaps, i, i+1)
	}

	// Sort by name, because parts of an answer come in any order.
	g.Files = slices.SortedFunc(slices.Values(g.Files), func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path))
	})
	g.Files = g.Files[:min(len(g.Files), maxNamed)]
	c.gaps = append(c.gaps, g)
	slices.SortStableFunc(c.gaps, func(a, b Gap) int {
		return cmp.Compare(slices.Index(gravity, a.Kind), slices.Index(gravity, b.Kind))
	})
	return c
}

// Without returns c without gaps of a kind, for a caller that searched there in another way.
func (c Coverage) Without(kind Kind) Coverage {
	c.gaps = slices.DeleteFunc(slices.Clone(c.gaps), func(g Gap) bool { return g.Kind == kind })
	return c
}

// And returns the coverage of an answer from two searches of the same files. If one is unknown, the
// whole is unknown.
func (c Coverage) And(d Coverage) Coverage {
	both := Coverage{made: c.made && d.made, unit: c.unit, asked: c.asked + d.asked, searched: c.searched + d.searched, gaps: slices.Clone(c.gaps)}
	for _, g := range d.gaps {
		// Both gaps are about the same files, so the larger number counts.
		if i := both.index(g.Kind); i < 0 {
			both = both.With(g)
		} else if g.Count > both.gaps[i].Count {
			both.gaps[i] = g
		}
	}
	return both
}

// Unit returns what the search counts.
func (c Coverage) Unit() Unit { return c.unit }

// Complete reports whether the answer provably has everything that the query asked for.
func (c Coverage) Complete() bool { return c.proved() && len(c.gaps) == 0 }

// Exhaustive reports whether everything in the index was searched and no limit cut anything. Files
// that are kept by name only are not in the index; an answer counts them separately.
func (c Coverage) Exhaustive() bool {
	return c.proved() && !slices.ContainsFunc(c.gaps, func(g Gap) bool { return g.Kind != NameOnly })
}

// Cut reports whether everything in the index was searched and only a limit kept matches out of the
// answer, so that counts are exact.
func (c Coverage) Cut() bool {
	return c.proved() && c.Worst() == Limit && !slices.ContainsFunc(c.gaps, func(g Gap) bool { return g.Kind != NameOnly && g.Kind != Limit })
}

// Nothing reports whether there was nothing to search: the index has none of what was asked for.
func (c Coverage) Nothing() bool { return c.made && c.asked == 0 }

func (c Coverage) proved() bool { return c.made && c.asked == c.searched }

// Gaps returns what is not covered, the worst first. An incomplete answer has at least one gap,
// which may be of kind Unknown.
func (c Coverage) Gaps() []Gap {
	gaps := slices.Clone(c.gaps)
	if !c.proved() && !slices.ContainsFunc(gaps, Gap.inIndex) {
		gaps = slices.Insert(gaps, 0, Gap{Kind: Unknown})
	}
	return gaps
}

// inIndex reports whether a gap is about data in the index. Files that are kept by name only and
// repositories that could not be indexed are not in it.
func (g Gap) inIndex() bool { return g.Kind != NameOnly && g.Kind != Failed }

// Worst returns the worst kind of gap in the index; "" if there is none. Repositories that could
// not be indexed and files that are kept by name only do not count.
func (c Coverage) Worst() Kind {
	for _, g := range c.Gaps() {
		if g.inIndex() {
			return g.Kind
		}
	}
	return ""
}

// Has reports whether there is a gap of one of the kinds.
func (c Coverage) Has(kinds ...Kind) bool {
	return slices.ContainsFunc(c.Gaps(), func(g Gap) bool { return slices.Contains(kinds, g.Kind) })
}

// Gap returns the gap of a kind; an empty gap if there is none.
func (c Coverage) Gap(kind Kind) Gap {
	if i := c.index(kind); i >= 0 {
		return c.gaps[i]
	}
	return Gap{Kind: kind}
}

func (c Coverage) index(kind Kind) int {
	return slices.IndexFunc(c.gaps, func(g Gap) bool { return g.Kind == kind })
}

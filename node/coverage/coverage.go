// Package coverage states what an answer covers: what was asked, what of it was
// searched, and what was not, by kind and count.
//
// A [Coverage] is made by the layer that searched, and by nobody else; a guard test of
// cmd/shoal finds other makers. Whatever says "complete" about an answer, in a tool, a
// route, a page or a metric, prints it from this value.
package coverage

import (
	"cmp"
	"slices"
)

// Coverage states what an answer covers. It is immutable. The zero value is unknown,
// which is not complete.
type Coverage struct {
	made            bool
	unit            Unit
	asked, searched int
	gaps            []Gap // the gravest first, at most one of each kind
}

// Unit is what is searched and counted.
type Unit string

// The units.
const (
	Parts        Unit = "parts of the index"
	Repositories Unit = "repositories"
	Files        Unit = "files"
)

// Kind is why something is not covered.
type Kind string

// The kinds.
const (
	Late       Kind = "time"      // time ran out
	Lost       Kind = "parts"     // Count of Of parts of the index did not answer, or for a viewer who may not see all of repositories
	Symbols    Kind = "symbols"   // the symbols of Count files are not known, yet or at all
	Limit      Kind = "limit"     // more than the limit lets through
	Pending    Kind = "pending"   // Count repositories are not indexed yet
	Revision   Kind = "revision"  // the revision is not indexed in Count of Of repositories, and in the others everything was looked at
	NoRevision Kind = "no-commit" // none of the Of repositories has the revision indexed
	NameOnly   Kind = "name-only" // Count files that could hold a match are kept by name only
	Failed     Kind = "failed"    // Count repositories could not be indexed
	Shallow    Kind = "history"   // the repository lacks the history before some commit, as its remote does
	Unknown    Kind = "unknown"   // nobody proved that all was searched
)

// gravity is the order of the kinds. Parts without an answer come before a limit, and a
// limit before repositories that are not ready.
var gravity = []Kind{Late, Lost, Symbols, Limit, Pending, Revision, NoRevision, Shallow, Unknown, NameOnly, Failed}

// Gap is something that an answer does not cover.
type Gap struct {
	Kind  Kind   `json:"kind"`
	Count int    `json:"count,omitzero"`    // 0 = not known
	Of    int    `json:"of,omitzero"`       // how many there are in all; 0 where that does not matter
	Ref   string `json:"revision,omitzero"` // of Revision and NoRevision
	Files []File `json:"files,omitempty"`   // the first of Count files, at most three
}

// File is a file that was not searched.
type File struct {
	Repo string `json:"repository"`
	Path string `json:"path"`
	Why  string `json:"-"` // "" where the kind says it
}

// maxNamed is how many files a gap names.
const maxNamed = 3

// Of is the coverage of a search that was to look at so many units and has looked at so
// many of them, each one completely.
func Of(unit Unit, asked, searched int) Coverage {
	return Coverage{made: true, unit: unit, asked: asked, searched: searched}
}

// With returns c with a gap. A gap of the same kind is joined with it.
func (c Coverage) With(g Gap) Coverage {
	c.gaps = slices.Clone(c.gaps)
	if i := c.index(g.Kind); i >= 0 {
		old := c.gaps[i]
		g.Count, g.Of = g.Count+old.Count, max(g.Of, old.Of)
		g.Files = slices.Concat(old.Files, g.Files)
		c.gaps = slices.Delete(c.gaps, i, i+1)
	}

	// By name: parts of an answer come in any order.
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

// Without returns c without a gap of a kind: for who has looked there in another way.
func (c Coverage) Without(kind Kind) Coverage {
	c.gaps = slices.DeleteFunc(slices.Clone(c.gaps), func(g Gap) bool { return g.Kind == kind })
	return c
}

// And is the coverage of an answer that stands on two searches of the same ground. An
// unknown one makes the whole unknown.
func (c Coverage) And(d Coverage) Coverage {
	both := Coverage{made: c.made && d.made, unit: c.unit, asked: c.asked + d.asked, searched: c.searched + d.searched, gaps: slices.Clone(c.gaps)}
	for _, g := range d.gaps {
		// Both speak of the same files: the larger number is that of all.
		if i := both.index(g.Kind); i < 0 {
			both = both.With(g)
		} else if g.Count > both.gaps[i].Count {
			both.gaps[i] = g
		}
	}
	return both
}

// Unit is what is searched and counted.
func (c Coverage) Unit() Unit { return c.unit }

// Complete reports whether the answer is proved to have all that was asked for.
func (c Coverage) Complete() bool { return c.proved() && len(c.gaps) == 0 }

// Exhaustive reports whether all that the index holds was searched, and no limit cut
// anything. Files that are kept by name only are not in the index: an answer counts them
// beside it.
func (c Coverage) Exhaustive() bool {
	return c.proved() && !slices.ContainsFunc(c.gaps, func(g Gap) bool { return g.Kind != NameOnly })
}

// Cut reports whether all that the index holds was searched and nothing but a limit kept
// matches from the answer, so that what was counted is exact.
func (c Coverage) Cut() bool {
	return c.proved() && c.Worst() == Limit && !slices.ContainsFunc(c.gaps, func(g Gap) bool { return g.Kind != NameOnly && g.Kind != Limit })
}

func (c Coverage) proved() bool { return c.made && c.asked == c.searched }

// Gaps lists what is not covered, the gravest first. An answer that is not complete has at
// least one gap, if need be one of kind Unknown.
func (c Coverage) Gaps() []Gap {
	gaps := slices.Clone(c.gaps)
	if !c.proved() && !slices.ContainsFunc(gaps, Gap.inIndex) {
		gaps = slices.Insert(gaps, 0, Gap{Kind: Unknown})
	}
	return gaps
}

// inIndex reports whether a gap is one of what is in the index: files that are kept by
// name only and repositories that could not be indexed are not.
func (g Gap) inIndex() bool { return g.Kind != NameOnly && g.Kind != Failed }

// Worst is the gravest kind of gap in what was searched; "" for none. Repositories that
// could not be indexed and files that are kept by name only do not count.
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

// Gap returns the gap of a kind; one of nothing where there is none.
func (c Coverage) Gap(kind Kind) Gap {
	if i := c.index(kind); i >= 0 {
		return c.gaps[i]
	}
	return Gap{Kind: kind}
}

func (c Coverage) index(kind Kind) int {
	return slices.IndexFunc(c.gaps, func(g Gap) bool { return g.Kind == kind })
}

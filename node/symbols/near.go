package symbols

import (
	"cmp"
	"path"
	"slices"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
)

// Place is the position of the name that a reader asks about.
type Place struct {
	Repo         string // "" where that is not known
	Path         string
	Line, Column int // from 1, the column in runes; 0 where that is not known
}

// nearFirst sorts results by nearness to the reader's position: same file, then directory, language
// and repository. In the same file, the last match before the position comes first. Otherwise the
// order stays.
func (r *SymbolResponse) nearFirst(p *Place) {
	if p == nil {
		return
	}

	language := shard.Language(p.Path, nil)
	near := func(f *SymbolFile) int { return p.nearness(f, language) }
	slices.SortStableFunc(r.Files, func(a, b SymbolFile) int { return near(&b) - near(&a) })

	for i := range r.Files {
		if f := &r.Files[i]; p.Line > 0 && p.isIn(f) {
			slices.SortStableFunc(f.Matches, func(a, b SymbolMatch) int { return p.compare(a.Range.Start, b.Range.Start) })
		}
	}
}

// isIn reports whether the position is in a file. Without a repository, any file with its path may
// be it.
func (p *Place) isIn(f *SymbolFile) bool {
	return f.Path == p.Path && (p.Repo == "" || p.Repo == f.Repository)
}

// nearness rates what a file shares with the reader's file. Each of the four criteria outweighs all
// later ones together.
func (p *Place) nearness(f *SymbolFile, language string) int {
	n := 0
	if p.isIn(f) {
		n += 8
	}
	if path.Dir(f.Path) == path.Dir(p.Path) && (p.Repo == "" || p.Repo == f.Repository) {
		n += 4
	}
	if language != "" && Mixed(language, f.Language) {
		n += 2
	}
	if p.Repo == f.Repository {
		n++
	}
	return n
}

// compare orders positions in the reader's file: first those up to the reader's, nearest first,
// then those after it.
func (p *Place) compare(a, b shard.Position) int {
	behindA, behindB := p.isBefore(a), p.isBefore(b)
	order := cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	switch {
	case behindA && behindB:
		return order
	case behindA:
		return 1
	case behindB:
		return -1
	}
	return -order
}

// isBefore reports whether the reader's position is before another. Without a column it is the end
// of its line.
func (p *Place) isBefore(at shard.Position) bool {
	if int(at.Line) != p.Line {
		return int(at.Line) > p.Line
	}
	return p.Column > 0 && int(at.Column) > p.Column
}

// best keeps the first files; 0 keeps all.
func (r *SymbolResponse) best(files int) {
	if files == 0 || len(r.Files) <= files {
		return
	}
	r.Files, r.Coverage = r.Files[:files], r.Coverage.With(coverage.Gap{Kind: coverage.Limit})
	r.Keep(func(SymbolMatch) bool { return true })
}

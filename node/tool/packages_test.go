package tool

import (
	"testing"

	"github.com/shoalsearch/shoal/node/symbols"
)

func TestFindDefinitions_dropsPackageClausesOfTheSameName(t *testing.T) {
	t.Parallel()
	file := func(kinds ...string) symbols.SymbolFile {
		f := symbols.SymbolFile{}
		for _, kind := range kinds {
			f.Matches = append(f.Matches, symbols.SymbolMatch{Kind: kind})
		}
		return f
	}
	for _, tt := range []struct {
		name          string
		files         []symbols.SymbolFile
		dropped, left int // places
		leftFiles     int
	}{
		{"both", []symbols.SymbolFile{file("function", "package"), file("package")}, 2, 1, 1},
		{"packages alone", []symbols.SymbolFile{file("package"), file("package")}, 0, 2, 2},
		{"none", []symbols.SymbolFile{file("function")}, 0, 1, 1},
	} {
		r := &symbols.SymbolResponse{Coverage: whole, Files: tt.files}
		for _, f := range tt.files {
			r.MatchCount += len(f.Matches)
		}
		if dropped := dropPackages(r); dropped != tt.dropped || r.MatchCount != tt.left || len(r.Files) != tt.leftFiles {
			t.Errorf("%s: %d dropped, %d left in %d files", tt.name, dropped, r.MatchCount, len(r.Files))
		}
	}
}

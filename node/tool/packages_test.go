package tool

import (
	"testing"

	"github.com/shoalsearch/shoal/node/search"
)

func TestPackageClausesAreNoDefinitionsOfWhatElseHasTheName(t *testing.T) {
	t.Parallel()
	file := func(kinds ...string) search.SymbolFile {
		f := search.SymbolFile{}
		for _, kind := range kinds {
			f.Matches = append(f.Matches, search.SymbolMatch{Kind: kind})
		}
		return f
	}
	for _, tt := range []struct {
		name          string
		files         []search.SymbolFile
		dropped, left int // places
		leftFiles     int
	}{
		{"both", []search.SymbolFile{file("function", "package"), file("package")}, 2, 1, 1},
		{"packages alone", []search.SymbolFile{file("package"), file("package")}, 0, 2, 2},
		{"none", []search.SymbolFile{file("function")}, 0, 1, 1},
	} {
		r := &search.SymbolResponse{Coverage: whole, Files: tt.files}
		for _, f := range tt.files {
			r.MatchCount += len(f.Matches)
		}
		if dropped := dropPackages(r); dropped != tt.dropped || r.MatchCount != tt.left || len(r.Files) != tt.leftFiles {
			t.Errorf("%s: %d dropped, %d left in %d files", tt.name, dropped, r.MatchCount, len(r.Files))
		}
	}
}

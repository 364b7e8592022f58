package tool

import (
	"context"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// listing answers each search with no file.
type listing struct {
	symbols.Searcher
	covers coverage.Coverage
}

func (l listing) Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
	return &search.Response{Coverage: l.covers}, nil
}

// Manifests that are kept by name only are looked at only where all of them were listed.
func TestDependencies_claimOnlyListedFiles(t *testing.T) {
	t.Parallel()
	all := coverage.Of(coverage.Parts, 3, 3)
	kept := coverage.Gap{Kind: coverage.NameOnly, Count: 2000}
	for name, c := range map[string]struct {
		listed coverage.Coverage
		left   bool
	}{
		"all are listed":        {all, false},
		"a limit cut the list":  {all.With(coverage.Gap{Kind: coverage.Limit}), true},
		"a node did not answer": {coverage.Of(coverage.Parts, 3, 2), true},
	} {
		tool := dependencies(nil, nil)
		d := &dependence{Args: newArgs(&tool)}
		got := d.readKept(t.Context(), catalog.Guest(), listing{covers: c.listed}, nil, all.With(kept))
		if got.Has(coverage.NameOnly) != c.left {
			t.Errorf("%s: files kept by name only are left: %v, want %v", name, !c.left, c.left)
		}
	}
}

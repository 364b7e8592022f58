package web

import (
	"context"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/query"
)

// speller knows the right names for some mistyped ones.
type speller struct {
	symbols.Searcher
	meant map[string]string
}

func (s speller) Definitions(_ context.Context, _ catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	if name := s.meant[req.Symbol]; name != "" {
		return &symbols.SymbolResponse{Similar: []string{name}, Mistyped: true}, nil
	}
	return &symbols.SymbolResponse{}, nil
}

// Mistyped names in a query are corrected, all together and each alone. Filters, quoted texts and
// excluded words are unchanged.
func TestMistypedQuery_getsCorrections(t *testing.T) {
	t.Parallel()
	p := &searching{searcher: speller{meant: map[string]string{"sdsnw": "sdsnew", "zmaloc": "zmalloc", "dictAd": "dictAdd", "abc": "abcd"}}}
	for query, want := range map[string][]string{
		"sdsnw":                                  {"sdsnew"},
		"free zmaloc file:sdsnw":                 {"free zmalloc file:sdsnw"},
		"sdsnw free zmaloc":                      {"sdsnew free zmalloc", "sdsnew free zmaloc", "sdsnw free zmalloc"},
		`"sdsnw" -zmaloc (dictAd) abc`:           nil,
		"dictAd one two sdsnw three zmaloc four": {"dictAd one two sdsnw three zmalloc four"},
	} {
		var got []string
		for _, try := range p.respelled(t.Context(), catalog.Viewer{}, layout.Box{Query: query}) {
			got = append(got, try.box.Query)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// Every filter of the language can be removed from a query, and has a row in the help.
func TestEveryFilter_canBeRemovedAndHasHelp(t *testing.T) {
	t.Parallel()
	for _, f := range query.Filters() {
		for _, name := range f.Names {
			tokens := tokensOf("-" + name + ":" + f.Example + " x")
			if len(tokens) != 2 || tokens[0].filter != name || !tokens[0].not {
				t.Errorf("%s: is read as %+v", name, tokens)
			}
		}
		if !slices.Contains(filterHelp(), [2]string{f.Written(), f.Sentence()}) {
			t.Errorf("%s: has no help", f.Names[0])
		}
	}
}

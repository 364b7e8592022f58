package web

import (
	"context"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
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

// The lines of a search of changes are those that came, those that went, or both.
func TestChangeSearch_looksForLinesOfOneSide(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][3]string{
		`type:diff foo -bar lang:go "a b"`:               {`type:diff foo -bar lang:go "a b"`, `type:diff added:foo -added:bar lang:go added:"a b"`, `type:diff removed:foo -removed:bar lang:go removed:"a b"`},
		"type:diff added:foo author:x":                   {"type:diff foo author:x", "type:diff added:foo author:x", "type:diff removed:foo author:x"},
		"type:diff (foo or removed:bar)":                 {"type:diff (foo or bar)", "type:diff (added:foo or added:bar)", "type:diff (removed:foo or removed:bar)"},
		"type:commit foo removed:bar":                    {"type:commit foo removed:bar", "type:commit foo added:bar", "type:commit foo removed:bar"},
		"type:diff author:x since:2026":                  {"type:diff author:x since:2026", "type:diff author:x since:2026", "type:diff author:x since:2026"},
		`type:diff foo or bar message:"added: not this"`: {`type:diff foo or bar message:"added: not this"`, `type:diff added:foo or added:bar message:"added: not this"`, `type:diff removed:foo or removed:bar message:"added: not this"`},
	} {
		for i, s := range lineFilters {
			if got := withLineFilter(query, s.filter, diffQuery.MatchString(query)); got != want[i] {
				t.Errorf("%s of %s: %s, want %s", s.name, query, got, want[i])
			}
		}
	}
	if sidesOf(layout.Box{Query: "type:diff author:x"}) != nil || sidesOf(layout.Box{Query: "type:commit x"}) != nil || len(sidesOf(layout.Box{Query: "type:diff x"})) != 3 {
		t.Error("sides are offered just where lines are looked for")
	}
}

// A line of a commit is found where it is after later changes.
func TestLine_isFoundAfterLaterChanges(t *testing.T) {
	t.Parallel()
	// Two lines come before line 1, lines 4 to 6 become one, line 9 goes.
	hunks := []browse.DiffHunk{{OldStart: 0, NewStart: 1, NewLines: 2}, {OldStart: 4, OldLines: 3, NewStart: 6, NewLines: 1}, {OldStart: 9, OldLines: 1, NewStart: 8}}
	for line, want := range map[int]int{1: 3, 3: 5, 4: 6, 6: 6, 7: 7, 8: 8, 9: 8, 10: 9} {
		if got := lineAfter(hunks, line); got != want {
			t.Errorf("line %d is at %d, not %d", line, got, want)
		}
	}
}

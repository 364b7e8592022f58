package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// A symbol is below each symbol whose lines include all of its own.
func TestOutline_nestsSymbolsByTheirLines(t *testing.T) {
	t.Parallel()
	lines := func(first, last int) browse.OutlineSymbol { return browse.OutlineSymbol{First: first, Last: last} }
	for _, c := range []struct {
		symbols []browse.OutlineSymbol
		want    []int
	}{
		{nil, nil},
		{[]browse.OutlineSymbol{lines(1, 1), lines(2, 2)}, []int{1, 1}},
		{[]browse.OutlineSymbol{lines(1, 9), lines(2, 4), lines(3, 3), lines(5, 9), lines(10, 12), lines(11, 11)}, []int{1, 2, 3, 2, 1, 2}},
		{[]browse.OutlineSymbol{lines(1, 5), lines(3, 8), lines(4, 4)}, []int{1, 1, 2}}, // they overlap: none includes the other
		{[]browse.OutlineSymbol{lines(1, 0), lines(2, 0)}, []int{1, 1}},                 // if the last line is unknown
		{[]browse.OutlineSymbol{lines(1, 20), lines(2, 19), lines(3, 18), lines(4, 17), lines(5, 16), lines(6, 15), lines(7, 14)}, []int{1, 2, 3, 4, 5, 6, 6}},
	} {
		var got []int
		for _, row := range outlineRows(c.symbols) {
			got = append(got, row.Level)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: levels %v, want %v", c.symbols, got, c.want)
		}
	}
}

// The script beside a file of 50,000 lines knows what the last of them are in.
func TestOutline_knowsThousandsOfSymbols(t *testing.T) {
	t.Parallel()
	f := &browse.OutlineFile{}
	for i := range 10_001 {
		f.Symbols = append(f.Symbols, browse.OutlineSymbol{Name: "f", First: 5*i + 1, Last: 5*i + 4})
	}
	o := outlineOf(place{}, f)
	if !strings.HasSuffix(o.All, "\n50001\t50004\t\tf\n") || o.More != "The first 250 of 10,001." {
		t.Errorf("it ends with %q and says %q", o.All[len(o.All)-20:], o.More)
	}
}

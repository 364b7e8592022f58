package web

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/browse"
)

// The newest commit of a file is of age 0 and the oldest of the last age, however
// far they are apart.
func TestLinesHaveAnAge(t *testing.T) {
	t.Parallel()
	at := func(days int) browse.BlameCommit {
		return browse.BlameCommit{Date: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days)}
	}
	for _, c := range []struct {
		commits map[string]browse.BlameCommit
		want    map[string]int
	}{
		{map[string]browse.BlameCommit{}, map[string]int{}},
		{map[string]browse.BlameCommit{"a": at(0)}, map[string]int{"a": 0}},
		{map[string]browse.BlameCommit{"a": at(0), "b": at(900), "c": at(901)}, map[string]int{"c": 0, "b": 4, "a": 9}},
	} {
		if got := agesOf(c.commits); !maps.Equal(got, c.want) {
			t.Errorf("ages %v, want %v", got, c.want)
		}
	}
}

// A number of a page so large that a multiple of it wraps around has nothing behind it.
func TestAListEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, total int
		want        bool
	}{
		{1, 0, false}, {1, 1, false}, {1, 100, false}, {1, 101, true}, {2, 200, false}, {2, 201, true},
		{math.MaxInt, 101, false}, {math.MaxInt/100 + 2, 101, false}, {math.MaxInt / 2, 101, false},
	} {
		if got := goesOn(c.page, 100, c.total); got != c.want {
			t.Errorf("page %d of %d entries goes on: %t", c.page, c.total, got)
		}
	}
}

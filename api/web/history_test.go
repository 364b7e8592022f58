package web

import (
	"maps"
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

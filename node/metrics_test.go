package node

import (
	"testing"

	"github.com/shoalsearch/shoal/node/coverage"
)

// Metrics distinguish an answer cut by the client's limit from one without some shards.
func TestSearchMetrics_countIncompleteAnswersByCause(t *testing.T) {
	t.Parallel()
	whole := coverage.Of(coverage.Parts, 1, 1)
	for want, c := range map[string]coverage.Coverage{
		"true complete":             whole,
		"false limit":               whole.With(coverage.Gap{Kind: coverage.Limit}),
		"false shards_unavailable":  coverage.Of(coverage.Parts, 1, 0).With(coverage.Gap{Kind: coverage.Lost, Count: 1, Of: 1}),
		"false symbols_unavailable": whole.With(coverage.Gap{Kind: coverage.Symbols, Count: 1}),
		"false not_indexed":         whole.With(coverage.Gap{Kind: coverage.Pending, Count: 1}),
	} {
		if exhaustive, reason := exhaustiveLabels(c); exhaustive+" "+reason != want {
			t.Errorf("%+v: %s %s, want %s", c, exhaustive, reason, want)
		}
	}
}

package node

import (
	"testing"

	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
)

// An answer that a client's limit cut must not look like one that lacks shards.
func TestAnswersAreCountedByWhatTheyLack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exhaustive bool
		flush      search.FlushReason
		want       string
	}{
		{true, search.FlushFinal, "true complete"},
		{false, search.FlushLimit, "false limit"},
		{false, search.FlushUnavailable, "false shards_unavailable"},
		{false, search.FlushUntagged, "false symbols_unavailable"},
		{false, search.FlushFinal, "false not_indexed"},
	} {
		out := &search.Response{Exhaustive: c.exhaustive, Stats: search.Stats{Stats: shard.Stats{}, FlushReason: c.flush}}
		if a, b := reasonOf(out); a+" "+b != c.want {
			t.Errorf("%v, %s: %s %s, want %s", c.exhaustive, c.flush, a, b, c.want)
		}
	}
}

package node

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
)

// A dashboard shows 0 for a kind of job of which none runs, and not that there
// is no data.
func TestKindsOfJobsThatDoNotRunAreZero(t *testing.T) {
	t.Parallel()
	s := &snapshot{here: []job.Progress{{Kind: catalog.JobIndex, Step: "fetch"}, {Kind: catalog.JobIndex, Step: "fetch"}}}
	got := map[string]float64{}
	for _, m := range hereMetrics() {
		if strings.Contains(m.Desc.String(), `"shoal_jobs_here"`) {
			m.Read(s, func(v float64, labels ...string) { got[strings.Join(labels, " ")] = v })
		}
	}

	if got["index fetch"] != 2 || len(got) != len(catalog.JobKinds()) {
		t.Errorf("got %v, want 2 of index and a 0 for each other kind", got)
	}
	for _, kind := range catalog.JobKinds() {
		if v, there := got[kind.String()+" "]; kind != catalog.JobIndex && (!there || v != 0) {
			t.Errorf("%s: %v, %t", kind, v, there)
		}
	}
}

package job

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A plan looks only at as many waiting jobs as it needs to fill the nodes.
func TestGrantJobs_looksOnlyAtAsManyAsItGrants(t *testing.T) {
	t.Parallel()
	looks := func(repos int, busy bool) (looks, grants int) {
		w := newWorld(t, oneConnection, 2)
		w.plan()
		fence := w.View().Job(catalog.JobSync, "a").Fence
		var page []catalog.ListedRepo
		for i := range repos {
			page = append(page, catalog.ListedRepo{Name: fmt.Sprint("r", i)})
		}
		for rest := range slices.Chunk(page, 500) {
			w.Do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: rest})
		}
		var jobs []catalog.Command
		for r := range w.View().Repos() {
			jobs = append(jobs, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(r.ID)})
		}
		for rest := range slices.Chunk(jobs, 1000) {
			w.Do(rest...)
		}
		if busy {
			w.Do(grantsOf(plan(w.kinds, Input{View: w.View(), Now: w.Now(), Nodes: w.nodes}))...)
		}

		p := newPlanner(w.kinds, Input{View: w.View(), Now: w.Now(), Nodes: w.nodes})
		p.revokeLostJobs()
		p.grantWaitingJobs()
		return p.lookCount, len(p.commands)
	}

	for _, busy := range []bool{false, true} {
		few, granted := looks(500, busy)
		if many, _ := looks(3000, busy); many != few || few > granted+len(table()) {
			t.Errorf("nodes busy %v: %d looks with 500 waiting jobs and %d with 3,000, for %d grants", busy, few, many, granted)
		}
		if busy == (granted > 0) {
			t.Errorf("nodes busy %v: %d grants", busy, granted)
		}
	}
}

func grantsOf(cmds []catalog.Command) (grants []catalog.Command) {
	for _, c := range cmds {
		if _, ok := c.(*catalog.GrantJob); ok {
			grants = append(grants, c)
		}
	}
	return grants
}

package ask

import (
	"context"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

const (
	lookPause  = 200 * time.Millisecond
	deadAfter  = time.Second            // of a runner that gossip calls dead
	givenUp    = turnTime + time.Minute // of a turn whose copies are all gone
	retainLook = 10 * time.Minute
)

// takeover sees to it that each turn runs somewhere.
type takeover struct {
	catalog   Catalog
	nodes     Nodes
	starter   *starter
	retention *retention
	pace      pace
	now       func() time.Time
}

// watch takes over what this node should answer, until ctx ends.
func (t *takeover) watch(ctx context.Context) {
	silent := map[string]time.Time{} // since when runners are, by thread
	var retained time.Time
	for clock.Wait(ctx, t.pace.of(lookPause)) {
		now, seen := t.now(), map[string]bool{}
		for h := range t.catalog.View().RunningThreads() {
			seen[h.ID] = true
			t.lookAfter(ctx, h, now, silent)
		}

		for id := range silent {
			if !seen[id] {
				delete(silent, id)
			}
		}

		if t.nodes.Leading() && now.Sub(retained) > t.pace.of(retainLook) {
			retained = now
			t.retention.expire(ctx, now)
		}
	}
}

// lookAfter takes over one turn, where its runner is gone and this node has a
// copy.
func (t *takeover) lookAfter(ctx context.Context, h *catalog.Thread, now time.Time, silent map[string]time.Time) {
	self := t.nodes.Self()
	if h.Run.Node == self {
		t.starter.resume(ctx, h.ID, h.Run.Fence)
		return
	}
	if t.nodes.Alive(h.Run.Node) {
		delete(silent, h.ID)
		return
	}

	// A runner is gone only when it was silent for a while: gossip errs for moments.
	since, known := silent[h.ID]
	if !known {
		silent[h.ID] = now
		return
	}

	switch {
	case now.Sub(since) < t.pace.of(deadAfter):
		// It may yet come back.
	case slices.Contains(h.Run.Copies, self):
		one, cancel := context.WithTimeout(ctx, proposeTime)
		defer cancel()

		// Another copy may have been first.
		move := &catalog.MoveRun{Thread: h.ID, Fence: h.Run.Fence, Node: self, Copies: []string{self}}
		_, _ = t.catalog.Propose(one, move)
	case now.Sub(h.Run.Since) > givenUp && !slices.ContainsFunc(h.Run.Copies, t.nodes.Alive):
		t.starter.keeper.abandon(ctx, h.ID, h.Run.Fence)
	}
}

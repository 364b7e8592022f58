package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

const (
	lookPause  = 200 * time.Millisecond
	lostAfter  = 10 * time.Second // of a node that gossip calls dead
	retainLook = 10 * time.Minute
)

// losses ends the turns whose node is lost: nobody else has what was said.
type losses struct {
	catalog   Catalog
	nodes     Nodes
	runs      *runs
	keeper    *keeper
	retention *retention
	pace      pace
	now       func() time.Time
	silent    map[string]time.Time // since when nodes with turns are
}

// watch ends what is lost, until ctx ends.
func (l *losses) watch(ctx context.Context) {
	var retained time.Time
	for clock.Wait(ctx, l.pace.of(lookPause)) {
		now := l.now()
		for h := range l.catalog.View().RunningThreads() {
			if l.lost(h, now) {
				l.keeper.lose(ctx, h)
			}
		}

		if l.nodes.Leading() && now.Sub(retained) > l.pace.of(retainLook) {
			retained = now
			l.retention.expire(ctx, now)
		}
	}
}

// lost reports whether this node should end a turn for the loss of its node.
func (l *losses) lost(h *catalog.Thread, now time.Time) bool {
	node := h.Run.Node
	switch {
	// This node was started again since.
	case node == l.nodes.Self():
		return !l.runs.has(h.ID)
	case l.nodes.Alive(node):
		delete(l.silent, node)
		return false
	}

	// Gossip errs for moments, and an answer is dear.
	since, known := l.silent[node]
	if !known {
		l.silent[node] = now
		return false
	}
	return l.nodes.Leading() && now.Sub(since) >= l.pace.of(lostAfter)
}

package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

const (
	lookPause  = 200 * time.Millisecond
	lostAfter  = 10 * time.Second // how long gossip must have called the node dead
	retainLook = 10 * time.Minute
)

// losses ends the turns whose node is lost, because no other node has what was said.
type losses struct {
	catalog   Catalog
	nodes     Nodes
	runs      *runs
	keeper    *keeper
	retention *retention
	pace      pace
	now       func() time.Time
	silent    map[string]time.Time // since when each node with running turns is silent
}

// endLostTurns ends turns of lost nodes until ctx ends, and deletes expired threads.
func (l *losses) endLostTurns(ctx context.Context) {
	var retained time.Time
	for clock.Wait(ctx, l.pace.scale(lookPause)) {
		now := l.now()
		for h := range l.catalog.View().RunningThreads() {
			if l.shouldEnd(h, now) {
				l.keeper.endLostTurn(ctx, h)
			}
		}

		if l.nodes.Leading() && now.Sub(retained) > l.pace.scale(retainLook) {
			retained = now
			l.retention.deleteOldThreads(ctx, now)
		}
	}
}

// shouldEnd reports whether this node should end a turn because the turn's node is lost.
func (l *losses) shouldEnd(h *catalog.Thread, now time.Time) bool {
	node := h.Run.Node
	switch {
	// If this node restarted, its turns are gone.
	case node == l.nodes.Self():
		return !l.runs.has(h.ID)
	case l.nodes.Alive(node):
		delete(l.silent, node)
		return false
	}

	// Gossip is wrong for moments, and an answer is expensive: wait.
	since, known := l.silent[node]
	if !known {
		l.silent[node] = now
		return false
	}
	return l.nodes.Leading() && now.Sub(since) >= l.pace.scale(lostAfter)
}

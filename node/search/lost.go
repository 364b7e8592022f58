package search

import (
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// lostAgain is the time between two log lines about one node.
const lostAgain = 30 * time.Second

// lostCalls logs that a node did not answer. Until the other nodes notice a dead node, every search
// fails to reach it. One line says so, and the next line has the number of failures in between.
type lostCalls struct {
	log *slog.Logger

	mu    sync.Mutex // guards the field below
	lines map[string]*lostNode
}

type lostNode struct {
	at       time.Time // of the last log line
	unlogged int       // calls that failed since
}

// note counts a failed call, and logs the first one in each period.
func (l *lostCalls) note(request, node string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now, last := clock.Now(), l.lines[node]
	if last != nil && now.Sub(last.at) < lostAgain {
		last.unlogged++
		return
	}

	// Say how many failures were not logged.
	var before []any
	if last != nil && last.unlogged > 0 {
		before = []any{"again", last.unlogged}
	}

	if l.lines == nil {
		l.lines = map[string]*lostNode{}
	}
	l.lines[node] = &lostNode{at: now}

	l.log.Warn("a node did not answer a search: others that hold the data are asked", append([]any{"request", request, "node", node, "err", err}, before...)...)
}

package search

import (
	"log/slog"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// lostAgain is the time between two lines of the log about one node.
const lostAgain = 30 * time.Second

// lostCalls writes down that a node did not answer. Every search of the seconds
// until the others notice a dead node fails to reach it: one line says so, the
// next has their number.
type lostCalls struct {
	log *slog.Logger

	mu   sync.Mutex // guards the field below
	said map[string]*lostNode
}

type lostNode struct {
	at      time.Time // of the last line
	leftOut int       // calls since
}

// note counts a call that failed, and logs the first of each while.
func (l *lostCalls) note(request, node string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now, last := clock.Now(), l.said[node]
	if last != nil && now.Sub(last.at) < lostAgain {
		last.leftOut++
		return
	}

	// The line that is logged says how many were not.
	var before []any
	if last != nil && last.leftOut > 0 {
		before = []any{"again", last.leftOut}
	}

	if l.said == nil {
		l.said = map[string]*lostNode{}
	}
	l.said[node] = &lostNode{at: now}

	l.log.Warn("a node did not answer a search: others that hold the data are asked", append([]any{"request", request, "node", node, "err", err}, before...)...)
}

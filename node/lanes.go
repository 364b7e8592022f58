package node

import (
	"github.com/shoalsearch/shoal/node/call"
)

// lanes limit concurrent work on the processors. Cheap searches never wait behind expensive
// searches or reads of mirrors.
type lanes struct{ light, heavy, long, reads *call.Lane }

// newLanes returns the queues of this node's work, with sizes for its number of cores.
func newLanes(cores int) lanes {
	// Light searches are short, so several share a core. Heavy ones use half of the cores. One
	// that runs long gives its place to another heavy search. Reads mostly wait for git and the
	// disk, not for a core.
	return lanes{
		light: call.NewLane("searches", 4*cores, 128*cores),
		heavy: call.NewLane("searches", max(1, cores/2), 32*cores),
		long:  call.NewLane("searches", 2*cores, 0),
		reads: call.NewLane("reads of repositories", max(16, 8*cores), 1024),
	}
}

// searches returns how many searches run and how many wait.
func (l lanes) searches() (running, waiting int) {
	r1, w1 := l.light.Busy()
	r2, w2 := l.heavy.Busy()
	r3, _ := l.long.Busy() // nothing waits in this lane
	return r1 + r2 + r3, w1 + w2
}

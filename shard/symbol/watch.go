package symbol

import (
	"fmt"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// wallFactor is the limit of the time for a file, as a multiple of the limit of its CPU time. On a
// busy machine a process waits much.
const wallFactor = 30

// watch kills a process that takes too much CPU time for a file, that does nothing, or that never
// ends. It is safe for concurrent use.
//
// It reads the CPU time only after the time limit has passed, not for each of millions of files. So
// a file gets at least its limit and at most twice that.
type watch struct {
	pid  int
	kill func()

	mu         sync.Mutex // guards the fields below
	timer      *time.Timer
	limit      time.Duration
	began      time.Time // start of the current file
	measured   bool      // lastUsage was read during the current file
	lastUsage  usage     // the usage when it was last read
	killReason string    // why the watch killed the process; "" if it did not
}

// usage is what the processes of a group have used so far.
type usage struct {
	cpu  time.Duration
	busy bool // one of them runs or waits for the disk
}

// newWatch returns a watch of a process and its group, which kill kills.
func newWatch(pid int, kill func()) *watch { return &watch{pid: pid, kill: kill} }

// begin starts the time of a file. It returns false if the watch has killed the process already.
func (w *watch) begin(limit time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killReason != "" {
		return false
	}

	w.limit, w.began, w.measured = limit, clock.Now(), false
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.check)
	} else {
		w.timer.Reset(limit)
	}
	return true
}

// stop ends the time of the current file. It returns why the watch killed the process; "" if it did
// not.
func (w *watch) stop() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	return w.killReason
}

// check kills the process if the current file has taken too long. Otherwise it sets the timer
// again. The first check of a file only reads the CPU time.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()

	age := clock.Since(w.began)
	if w.killReason != "" || age < w.limit { // another file has begun since the timer fired
		return
	}

	now, known := usageOf(w.pid)
	spent := now.cpu - w.lastUsage.cpu
	switch {
	case !known || age >= wallFactor*w.limit:
		w.killReason = fmt.Sprintf("gave up after %v", age.Round(time.Millisecond))
	case w.measured && spent >= w.limit:
		w.killReason = fmt.Sprintf("gave up after %v of CPU time", spent.Round(time.Millisecond))
	case w.measured && spent == 0 && !now.busy && !w.lastUsage.busy:
		w.killReason = fmt.Sprintf("gave up after %v: the program does nothing", age.Round(time.Millisecond))
	default:
		next := w.limit
		if w.measured {
			next = max(w.limit-spent, w.limit/8)
		} else {
			w.measured, w.lastUsage = true, now
		}
		w.lastUsage.busy = now.busy
		w.timer.Reset(next)
		return
	}
	w.kill()
}

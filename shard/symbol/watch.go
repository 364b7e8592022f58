package symbol

import (
	"fmt"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// wallFactor is how many times its CPU time a file may take: on a busy machine a process waits.
const wallFactor = 30

// watch kills a process that takes too much CPU time for a file, that does nothing, or that never
// ends. It is safe for concurrent use.
//
// It reads the CPU time only after the time limit has passed, not for each of millions of files. So
// a file gets at least its limit and at most twice that.
type watch struct {
	pid  int
	kill func()

	mu    sync.Mutex // guards the fields below
	timer *time.Timer
	limit time.Duration
	began time.Time // start of the file
	seen  bool      // used is about this file
	used  usage     // usage when it was last read
	why   string    // why the process was killed; "" if it was not
}

// usage is what the processes of a group have used so far.
type usage struct {
	cpu  time.Duration
	busy bool // one of them runs or waits for the disk
}

func newWatch(pid int, kill func()) *watch { return &watch{pid: pid, kill: kill} }

// begin starts the time of a file. It reports false if the process was killed already.
func (w *watch) begin(limit time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why != "" {
		return false
	}

	w.limit, w.began, w.seen = limit, clock.Now(), false
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.look)
	} else {
		w.timer.Reset(limit)
	}
	return true
}

// end ends the time of the last file. It returns why the process was killed; "" if it was not.
func (w *watch) end() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	return w.why
}

// look kills the process if the present file has taken too long. Otherwise it sets the timer again.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()

	// Another file has begun since the timer fired.
	age := clock.Since(w.began)
	if w.why != "" || age < w.limit {
		return
	}

	now, known := usageOf(w.pid)
	spent := now.cpu - w.used.cpu
	switch {
	case !known || age >= wallFactor*w.limit:
		w.why = fmt.Sprintf("gave up after %v", age.Round(time.Millisecond))
	case w.seen && spent >= w.limit:
		w.why = fmt.Sprintf("gave up after %v of CPU time", spent.Round(time.Millisecond))
	case w.seen && spent == 0 && !now.busy && !w.used.busy:
		w.why = fmt.Sprintf("gave up after %v: the program does nothing", age.Round(time.Millisecond))
	default:
		// The first look only reads the CPU time of the process.
		next := w.limit
		if w.seen {
			next = max(w.limit-spent, w.limit/8)
		} else {
			w.seen, w.used = true, now
		}
		w.used.busy = now.busy
		w.timer.Reset(next)
		return
	}
	w.kill()
}

package layout

import (
	"bufio"
	"time"
)

// QuietEvents is for how long a stream of events may be silent: a proxy takes a
// silent connection for a dead one.
const QuietEvents = 10 * time.Second

// KeepAlive makes what shows on a stream of events without any that it lives: a
// comment, which clients pass over.
func KeepAlive(w *bufio.Writer) func() error {
	return func() error {
		if _, err := w.WriteString(": still at work\n\n"); err != nil {
			return err
		}
		return w.Flush()
	}
}

package layout

import (
	"bufio"
	"time"
)

// QuietEvents is how long an event stream may be silent. Proxies close connections that are silent
// for longer.
const QuietEvents = 10 * time.Second

// KeepAlive returns a function that writes a comment to an event stream, which clients ignore.
func KeepAlive(w *bufio.Writer) func() error {
	return func() error {
		if _, err := w.WriteString(": still at work\n\n"); err != nil {
			return err
		}
		return w.Flush()
	}
}

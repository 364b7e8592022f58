package call

import (
	"fmt"
	"runtime/debug"
)

// Caught runs f and returns what it panicked with, and where; "" where it did not. In a
// goroutine of its own a panic would end the node: whoever waits for the goroutine
// raises it again, and it ends the request alone.
func Caught(f func()) (trouble string) {
	defer func() {
		if p := recover(); p != nil {
			trouble = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}

package call

import (
	"fmt"
	"runtime/debug"
)

// Caught runs f. If f panics, it returns the panic's value and stack; otherwise "". A panic in a
// goroutine would end the node: repeat it where the goroutine is waited for, so that it only ends
// the request.
func Caught(f func()) (trouble string) {
	defer func() {
		if p := recover(); p != nil {
			trouble = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}

package browse

import (
	"fmt"
	"strings"
	"testing"
)

// A panic in a goroutine of a request ends the request, and not the node.
func TestPanicInAGoroutine_endsOnlyItsRequest(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "out of range") || !strings.Contains(fmt.Sprint(p), "change_test.go") {
			t.Errorf("the request sees %v, want what was panicked with, and where", p)
		}
	}()
	wait := inBackground(func() { _ = []int{}[len(t.Name())] })
	wait()
	t.Error("nobody was told")
}

package host

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests, or runs [outside] in a separate process with another environment.
func TestMain(m *testing.M) {
	if text := os.Getenv(outsideRun); text != "" {
		fmt.Println(outside(text))
		return
	}
	os.Exit(m.Run())
}

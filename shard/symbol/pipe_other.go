//go:build !linux

package symbol

import "os"

// widen gives what a pipe holds, at least.
func widen(*os.File) int { return 16 << 10 }

package symbol

import (
	"os"

	"golang.org/x/sys/unix"
)

// wide is the size that a pipe is asked to have: what everybody may ask for.
const wide = 1 << 20

// widen makes a pipe hold more and gives what it holds.
func widen(f *os.File) int {
	size := 0
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, wide); err != nil {
				size, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
				return
			}
			size = wide
		})
	}
	return max(size, os.Getpagesize())
}

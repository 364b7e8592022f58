package symbol

import (
	"os"

	"golang.org/x/sys/unix"
)

// wide is the wanted size of a pipe, which every user may ask for.
const wide = 1 << 20

// widen enlarges a pipe and returns its size.
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

package symbol

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is the wanted size of a pipe, and the largest that every user may set.
const pipeSize = 1 << 20

// widen enlarges a pipe to pipeSize if the system allows that, and returns its size.
func widen(f *os.File) int {
	size := 0
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize); err != nil {
				size, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
				return
			}
			size = pipeSize
		})
	}
	return max(size, os.Getpagesize())
}

package file

import (
	"os"
	"syscall"
)

// writeback tells the disk to start writing a part of a file. Only the sync at the end guarantees
// anything.
func writeback(f *os.File, from, n int64) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), from, n, write)
}

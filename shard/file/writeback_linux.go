package file

import (
	"os"
	"syscall"
)

// writeback begins to write a part of a file to the disk. It promises
// nothing; the sync at the end does.
func writeback(f *os.File, from, n int64) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), from, n, write)
}

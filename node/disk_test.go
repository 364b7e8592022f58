package node

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A volume with much reserved space is not full. Otherwise a node there would get no data.
func TestReservedDiskSpace_isNotCountedAsUsed(t *testing.T) {
	t.Parallel()
	free, total := freeSpace(&unix.Statfs_t{Bsize: 4096, Blocks: 252, Bfree: 182, Bavail: 22})
	if free != 22*4096 || total != 92*4096 {
		t.Errorf("free %d, total %d blocks, want 22 and 92", free/4096, total/4096)
	}
}

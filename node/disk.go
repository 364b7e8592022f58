package node

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience is how long a start waits for the former process to be gone.
const lockPatience = 3 * time.Second

// lockDir makes sure that one process at a time uses a data directory.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir) // the directory itself: a file of its own could be deleted
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	// A process that is being started by the former owner holds the lock for
	// the moment between fork and exec: a short while is nobody's fault.
	for deadline := time.Now().Add(lockPatience); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another process", dir)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return func() { f.Close() }, nil
}

// diskSpace is the bytes of the volume of a directory that are free for us,
// and all of them; zeros when that cannot be told.
func diskSpace(dir string) (free, total int64) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize
}

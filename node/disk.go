package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
)

// lockPatience is how long a start waits for the previous process to release the data directory.
const lockPatience = 3 * time.Second

// lockDir locks a data directory, so that only one process uses it.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir) // lock the directory itself: somebody could delete a lock file
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	// A process that the last owner is starting holds the lock between fork and exec. That is no
	// conflict, so wait a moment.
	for began := clock.Now(); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) || clock.Since(began) > lockPatience {
			break
		}
		clock.Wait(context.Background(), 20*time.Millisecond)
	}

	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w", dir, cluster.ErrInUse)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}

	return func() {
		unix.Flock(int(f.Fd()), unix.LOCK_UN) // a forked child may still have the file open
		f.Close()
	}, nil
}

// closeToOthers makes the directories below the data directory readable by this user only, since
// they hold all indexed code.
func closeToOthers(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}

	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 == 0 {
			continue // gone meanwhile, or private already
		}

		if err := os.Chmod(filepath.Join(dir, d.Name()), 0o700); err != nil {
			return fmt.Errorf("others can read the data directory: %w", err)
		}
	}
	return nil
}

// diskSpace returns the bytes that are free for this process on the volume of dir, and the
// volume's total without what the file system reserves. Both are 0 if the file system does not
// answer.
func diskSpace(dir string) (free, total int64) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	return freeSpace(&st)
}

// freeSpace counts as df does: blocks reserved for root are neither free nor used.
func freeSpace(st *unix.Statfs_t) (free, total int64) {
	used := st.Blocks - st.Bfree
	return int64(st.Bavail) * st.Bsize, int64(used+st.Bavail) * st.Bsize
}

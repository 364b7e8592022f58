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

// lockPatience is how long a start waits for the former process to be gone.
const lockPatience = 3 * time.Second

// lockDir makes sure that one process at a time uses a data directory.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir) // the directory itself: a file of its own could be deleted
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	// A process that is being started by the last owner holds the lock for
	// the moment between fork and exec: a short while is nobody's fault.
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
		unix.Flock(int(f.Fd()), unix.LOCK_UN) // whoever else has the file open meanwhile
		f.Close()
	}, nil
}

// closeToOthers takes the directories below a data directory from everybody
// but this user, whoever made them and with what mode: all code that is indexed
// lies there.
func closeToOthers(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}

	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 == 0 {
			continue // gone meanwhile, or as it should be
		}

		if err := os.Chmod(filepath.Join(dir, d.Name()), 0o700); err != nil {
			return fmt.Errorf("others can read the data directory: %w", err)
		}
	}
	return nil
}

// diskSpace is the bytes of the volume of a directory that are free for us,
// and all that are not kept for others; zeros when that cannot be told.
func diskSpace(dir string) (free, total int64) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	return spaceOf(&st)
}

// spaceOf counts as df does: what the file system keeps for others is neither
// free nor in use.
func spaceOf(st *unix.Statfs_t) (free, total int64) {
	used := st.Blocks - st.Bfree
	return int64(st.Bavail) * st.Bsize, int64(used+st.Bavail) * st.Bsize
}

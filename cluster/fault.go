package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	bbolterrors "go.etcd.io/bbolt/errors"
)

// diskFaults are those of a volume: they may be gone at the next start.
var diskFaults = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO}

// DiskFault reports whether an error is of a volume that is full or fails.
func DiskFault(err error) bool {
	for _, f := range diskFaults {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// faultOf says what keeps a file of the data directory from being used where its
// content is not at fault, and what to do. It is nil where the content may be.
func faultOf(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cluster: user %s may not use %s: give it to that user, as `chown -R %[1]s %[3]s`: %[4]w", userName(), path, filepath.Dir(path), err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("cluster: the volume of %s is mounted read-only: mount it for writing: %w", path, err)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("cluster: the disk of %s fails: look at it and at the kernel's log: %w", path, err)
	case DiskFault(err):
		return fmt.Errorf("cluster: the volume of %s is full: make space on it: %w", path, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("cluster: too many files are open to open %s: raise the limit (ulimit -n): %w", path, err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("cluster: there is no memory to open %s: %w", path, err)
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("cluster: %s is %w: stop that process", path, ErrInUse)
	case errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("cluster: %s was written by another version of the program: start that version: %w", path, err)
	}
	return nil
}

// userName is the user of this process.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

// readable fails where this process may not read a file below a folder: raft passes
// over snapshots that it cannot open, as if they were damaged.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var f *os.File
			if f, err = os.Open(path); err == nil {
				return f.Close()
			}
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if fault := faultOf(path, err); fault != nil {
			return fault
		}
		return nil // what is damaged is found where it is read
	})
}

// Inherit gives a new file the owner of the folder that it is in, where this process is
// root's and the folder is not: a command that somebody runs as root must leave no
// file that the service cannot use.
func Inherit(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var folder, file syscall.Stat_t
	if err := errors.Join(syscall.Lstat(path, &file), syscall.Stat(filepath.Dir(path), &folder)); err != nil {
		return fmt.Errorf("cluster: owner of %s: %w", path, err)
	}
	if file.Uid != 0 || folder.Uid == 0 {
		return nil
	}
	return os.Lchown(path, int(folder.Uid), int(folder.Gid))
}

// inherit is Inherit for all that a command of an operator may have written in a data
// directory.
func (h *home) inherit() error {
	if h.made {
		if err := Inherit(h.dir); err != nil {
			return err
		}
	}
	if err := Inherit(filepath.Join(h.dir, "node.json")); err != nil {
		return err
	}
	return filepath.WalkDir(h.raft, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, Inherit(path))
	})
}

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

// diskFaults are errors of a volume. They may be gone at the next start.
var diskFaults = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO}

// DiskFault reports whether a full or failing volume caused an error.
func DiskFault(err error) bool {
	for _, f := range diskFaults {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// faultOf returns an error that tells why a file cannot be used, and what to do, if the cause is
// outside the file. It returns nil if the content may be damaged.
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

// userName returns the name of this process's user.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

// checkReadable returns an error if some file below a folder cannot be read for a reason outside the
// file, such as its permissions. Raft would skip such a snapshot as if it were damaged.
func checkReadable(dir string) error {
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
		return nil // damage is found by whoever reads the file
	})
}

// Inherit gives a new file to the owner of its folder if this process runs as root and the owner is
// another user. A command run as root must leave no file that the service cannot use.
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

// inherit calls Inherit for every file that an operator's command may have written.
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

// Package disk writes files so that a crash never leaves half a file.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file that only this process's user may read. It returns the number of bytes.
// After a crash or an error the path has the old file or the new one. Calls for different paths may
// run concurrently.
func Replace(path string, r io.Reader) (n int64, err error) {
	// Use the same directory: a rename needs one file system.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new")
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return 0, fmt.Errorf("write %s: %w", path, wrong.Err) // the caller knows no other name
	}
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // does nothing after a successful rename

	// Sync the bytes before the rename, and the directory after it.
	n, err = io.Copy(f, r)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return n, syncDir(filepath.Dir(path))
}

// syncDir syncs a directory, so that a rename in it survives a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Package disk writes files that a crash leaves whole.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file for this process's user alone and returns its bytes. After a crash
// or an error the path has the old file or the new one. Calls for different paths may run at
// the same time.
func Replace(path string, r io.Reader) (n int64, err error) {
	// A rename stays within one file system.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // fails, as it should, once the file has its name

	// The bytes are on the disk before the name, and the name before the caller goes on.
	n, err = io.Copy(f, r)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return n, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

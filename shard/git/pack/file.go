package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// ErrSpecial means that a file is not an ordinary one: a symbolic link, a pipe, a device.
var ErrSpecial = errors.New("not an ordinary file")

// ErrTooLarge means that a file has more bytes than its kind may have.
var ErrTooLarge = errors.New("the file is too large")

// OpenFile opens an ordinary file below root for reading. The file may be hostile: OpenFile does
// not follow a path out of root, does not block at a pipe, and opens no device. For these it
// returns ErrSpecial.
func OpenFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	// Check the kind first, because opening some devices has effects.
	if info, err := root.Lstat(name); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w", name, ErrSpecial)
	}

	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}

	// Somebody may have replaced the file since Lstat.
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, ErrSpecial)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// ReadFile reads a file below root with OpenFile. It returns ErrTooLarge if the file has more than
// maxSize bytes.
func ReadFile(root *os.Root, name string, maxSize int64) ([]byte, error) {
	f, info, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	if info.Size() > maxSize {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", name, info.Size(), maxSize, ErrTooLarge)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && int64(len(text)) > maxSize { // the file has grown since Stat
		err = fmt.Errorf("%s has more than %d bytes: %w", name, maxSize, ErrTooLarge)
	}
	return text, err
}

// maxLevels is the greatest depth of directories for Walk.
const maxLevels = 128

// Walk calls use for each entry below a directory of root that is not a directory, with its path
// from root, in no order. It does not follow symbolic links. A missing directory counts as empty.
func Walk(root *os.Root, dir string, use func(name string, d fs.DirEntry) error) error {
	return walk(root, dir, 0, use)
}

// walk calls use for the files below a directory, a limited number of levels deep.
func walk(root *os.Root, dir string, level int, use func(name string, d fs.DirEntry) error) error {
	if level > maxLevels {
		return fmt.Errorf("%.80s: more than %d levels of directories: %w", dir, maxLevels, ErrTooLarge)
	}

	// Open only a directory, not a link to one.
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()

	for {
		const atOnce = 512 // so that a large directory takes little memory
		entries, err := f.ReadDir(atOnce)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				if err := walk(root, name, level+1, use); err != nil {
					return err
				}
			} else if err := use(name, e); err != nil {
				return err
			}
		}

		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

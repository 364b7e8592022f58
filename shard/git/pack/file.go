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

// OpenFile opens an ordinary file below root for reading. Anybody may have put the file there: so
// no path leads out of root, a pipe does not block it, and no device is opened. The error is
// ErrSpecial, or one of the file system.
func OpenFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	// Opening some devices has effects, so look first.
	if info, err := root.Lstat(name); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w", name, ErrSpecial)
	}

	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}

	// The file may have been exchanged since the first look.
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

// ReadFile reads a file below root with OpenFile, if it has at most most bytes; otherwise it
// returns ErrTooLarge.
func ReadFile(root *os.Root, name string, most int64) ([]byte, error) {
	f, info, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", name, info.Size(), most, ErrTooLarge)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most { // it has grown meanwhile
		err = fmt.Errorf("%s has more than %d bytes: %w", name, most, ErrTooLarge)
	}
	return text, err
}

// maxLevels is the greatest depth of directories that is walked.
const maxLevels = 128

// Walk calls use for everything below a directory of root that is not a directory, with its path
// from root, in no order. It reads directories in parts, so that a large one takes little memory,
// and does not follow symbolic links. A missing directory counts as empty.
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
		// Read in parts, so that memory does not grow with the directory.
		const part = 512
		entries, err := f.ReadDir(part)
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

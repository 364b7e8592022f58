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

// ErrSpecial means that something is no ordinary file: a symbolic link, a
// pipe, a device.
var ErrSpecial = errors.New("not an ordinary file")

// ErrTooLarge means that a file has more bytes than one of its kind may have.
var ErrTooLarge = errors.New("the file is too large")

// OpenFile opens a file below root for reading, if it is an ordinary one. What
// it is given may have been put there by anybody: no path leads out of root,
// no pipe makes it wait, no device is touched. The error is ErrSpecial, or one
// of the file system.
func OpenFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	// Some devices do something when they are opened, so look first.
	if info, err := root.Lstat(name); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w", name, ErrSpecial)
	}

	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}

	// It may have been exchanged between the two looks.
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

// ReadFile reads a file below root that OpenFile opens and that has at most so
// many bytes; ErrTooLarge for a larger one.
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

// maxLevels is how deep directories are followed.
const maxLevels = 128

// Walk calls use with everything below a directory of root that is no
// directory itself, by its path from root, in no order. Directories are read
// in parts, so that a large one takes no memory, and symbolic links are not
// followed. A directory that is not there has nothing below it.
func Walk(root *os.Root, dir string, use func(name string, d fs.DirEntry) error) error {
	return walk(root, dir, 0, use)
}

func walk(root *os.Root, dir string, level int, use func(name string, d fs.DirEntry) error) error {
	if level > maxLevels {
		return fmt.Errorf("%.80s: more than %d levels of directories: %w", dir, maxLevels, ErrTooLarge)
	}

	// Only a directory, never one that a link leads to.
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()

	for {
		// In parts, so that memory does not grow with the directory.
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

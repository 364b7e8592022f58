package file

import (
	"errors"
	"fmt"
)

// ErrDamaged matches every error about a file whose bytes are not those that were written. Such a
// file is quarantined, and must be built or copied again.
var ErrDamaged = errors.New("damaged shard file")

var errTooShort = fmt.Errorf("%w: too short", ErrDamaged)

// DamagedError names the damaged file. It matches [ErrDamaged].
type DamagedError struct {
	File string // its name in its directory
	Err  error  // what is wrong with it
}

func (e *DamagedError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the error that says what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// Is reports that the error matches ErrDamaged, whatever is wrong.
func (e *DamagedError) Is(kind error) bool { return kind == ErrDamaged }

// Damaged returns a [DamagedError] about the file. format and args say what is wrong.
func (f *File) Damaged(format string, args ...any) error {
	return &DamagedError{File: f.name, Err: fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))}
}

// Blame returns err as a [DamagedError] about this file if it matches ErrDamaged and names no file.
// It returns other errors unchanged.
func (f *File) Blame(err error) error {
	named := (*DamagedError)(nil)
	if err == nil || errors.As(err, &named) || !errors.Is(err, ErrDamaged) {
		return err
	}
	return &DamagedError{File: f.name, Err: err}
}

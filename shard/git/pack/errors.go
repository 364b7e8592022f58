package pack

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrAskGit is the error for an object that this package cannot read: it is in no pack, has an unknown
// format, is too large, or is damaged. The caller must run git.
var ErrAskGit = errors.New("git has to be asked")

// The reasons for ErrAskGit.
var (
	errDamaged = errors.New("damaged")
	errMissing = errors.New("in no pack")
	errLarge   = errors.New("too large to be read here")
)

// wrapAskGit wraps an error in ErrAskGit.
func wrapAskGit(err error) error {
	if err == nil || errors.Is(err, ErrAskGit) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrAskGit, err)
}

// Protect calls f. If f reads a mapped file beyond its end, because somebody has truncated it,
// Protect returns ErrAskGit. Callers of [Graph.ID] and [Graph.Tree] need it.
func Protect(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = wrapAskGit(errDamaged)
		}
	}()
	return f()
}

package pack

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrAskGit is the answer to all that is not read here: what is in no pack,
// has a form that is not known, is larger than is read here, or is damaged.
// Git is to be asked then.
var ErrAskGit = errors.New("git has to be asked")

// What ErrAskGit comes with.
var (
	errDamaged = errors.New("damaged")
	errMissing = errors.New("in no pack")
	errLarge   = errors.New("too large to be read here")
)

// ask makes ErrAskGit of an error, and keeps it.
func ask(err error) error {
	if err == nil || errors.Is(err, ErrAskGit) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrAskGit, err)
}

// Protect calls f and makes ErrAskGit of the fault that touching a mapped file
// beyond its end is: somebody has cut it short meanwhile. What reads ids or
// trees of a [Graph] has to run in it.
func Protect(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = ask(errDamaged)
		}
	}()
	return f()
}

package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// FaultError reports that reading a mapped file failed: it was truncated after it was opened, or
// its disk does not answer. It matches [ErrDamaged].
type FaultError struct {
	Address uintptr // address that could not be read, see [File.Holds]
	Cause   any     // of the panic
}

func (e *FaultError) Error() string { return fmt.Sprintf("%v: %v", ErrDamaged, e.Cause) }

// Is reports that the error matches ErrDamaged.
func (e *FaultError) Is(kind error) bool { return kind == ErrDamaged }

// PanicError reports that a task panicked for another reason than its files. They are not damaged: the
// program has a mistake.
type PanicError struct {
	Cause any    // of the panic
	Place string // the functions that panicked, the innermost first
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a mistake of the program: %v in %s", e.Cause, e.Place)
}

// Unusable reports whether an error says that a file could not be used: it is damaged, or a task that reads it
// panicked.
func Unusable(err error) bool {
	panicked := (*PanicError)(nil)
	return errors.Is(err, ErrDamaged) || errors.As(err, &panicked)
}

// Guard runs a task. It turns a fault while reading a mapped file into a [FaultError], and any other panic into
// a [PanicError]. Otherwise either would end the process.
func Guard(task func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		p := recover()
		if p == nil {
			return
		}

		// A memory fault has an address, which identifies the file.
		if at, ok := p.(interface{ Addr() uintptr }); ok {
			err = &FaultError{Address: at.Addr(), Cause: p}
			return
		}
		err = &PanicError{Cause: p, Place: placeOfPanic()}
	}()
	return task()
}

// framesNamed is how many functions the place of a panic has.
const framesNamed = 4

// placeOfPanic returns the innermost functions of this program in the stack of a panic, as
// "shard.(*search).render (render.go:31)". It is called while the panic is recovered.
func placeOfPanic() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var named []string
	for more := true; more && len(named) < framesNamed; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			named = append(named, fmt.Sprintf("%s (%s:%d)", f.Function[strings.LastIndexByte(f.Function, '/')+1:], filepath.Base(f.File), f.Line))
		}
	}
	return strings.Join(named, " < ")
}

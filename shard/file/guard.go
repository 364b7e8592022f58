package file

import (
	"fmt"
	"runtime/debug"
)

// FaultError reports that reading a mapped file failed: it was truncated after it was opened, or
// its disk does not answer. It matches [ErrDamaged].
type FaultError struct {
	Address uintptr // address that could not be read, see [File.Holds]; 0 = unknown
	Cause   any     // of the panic
}

func (e *FaultError) Error() string { return fmt.Sprintf("%v: %v", ErrDamaged, e.Cause) }

// Is reports that the error matches ErrDamaged.
func (e *FaultError) Is(kind error) bool { return kind == ErrDamaged }

// Guard runs a task. It turns a fault while reading a mapped file into a [FaultError]. Otherwise the
// fault would end the process with a signal.
func Guard(task func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		p := recover()
		if p == nil {
			return
		}

		// A memory fault has an address, which identifies the file.
		fault := &FaultError{Cause: p}
		if at, ok := p.(interface{ Addr() uintptr }); ok {
			fault.Address = at.Addr()
		}
		err = fault
	}()
	return task()
}

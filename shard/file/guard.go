package file

import (
	"fmt"
	"runtime/debug"
)

// FaultError reports that reading a mapped file failed: it became shorter after
// it was opened, or its disk does not answer. It is an [ErrDamaged].
type FaultError struct {
	Address uintptr // that could not be read, see [File.Holds]; 0 where that is not known
	Cause   any     // of the panic
}

func (e *FaultError) Error() string { return fmt.Sprintf("%v: %v", ErrDamaged, e.Cause) }

// Is reports that the error is of the kind ErrDamaged.
func (e *FaultError) Is(kind error) bool { return kind == ErrDamaged }

// Guard runs a task and turns a fault of reading a mapped file into a
// [FaultError]: without it the process would end by a signal.
func Guard(task func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		p := recover()
		if p == nil {
			return
		}

		// A fault of memory tells its address, which tells the file.
		fault := &FaultError{Cause: p}
		if at, ok := p.(interface{ Addr() uintptr }); ok {
			fault.Address = at.Addr()
		}
		err = fault
	}()
	return task()
}

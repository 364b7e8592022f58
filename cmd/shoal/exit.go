package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/shard/file"
)

// Exit codes besides 0, and 1 for a successful command without results, as in grep. Package
// cluster exits with 70 (EX_SOFTWARE) if a node's disk fails or stalls.
const (
	exitFailed = 2
	// exitConfig tells a supervisor not to restart the node, because it would fail again. It is
	// EX_CONFIG of sysexits.h.
	exitConfig = 78
	exitDisk   = 70 // the volume is full or fails
)

// exitOf returns the exit code of an error.
func exitOf(err error) int {
	var wrong *notStartable
	if disk := (*diskFailed)(nil); errors.As(err, &disk) {
		return exitDisk
	}
	if errors.As(err, &wrong) || errors.Is(err, cluster.ErrRefused) ||
		errors.Is(err, file.ErrNewer) || errors.Is(err, codec.ErrNewer) {
		return exitConfig
	}
	return exitFailed
}

// notStartable wraps the error of a start that will fail again until somebody changes something.
type notStartable struct{ error }

// Unwrap returns the reason.
func (e *notStartable) Unwrap() error { return e.error }

// diskFailed wraps the error of a start that will fail again until the disk has space or is replaced.
type diskFailed struct{ error }

// Unwrap returns the reason.
func (e *diskFailed) Unwrap() error { return e.error }

// temporaryFailures are reasons for a failed start that may be gone at the next start.
var temporaryFailures = []error{
	cluster.ErrInUse, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENETUNREACH,
}

// wrapStartFailure wraps the error of a failed start, so that exitOf tells the supervisor not to
// start the node again. It returns a temporary failure unchanged.
func wrapStartFailure(err error) error {
	if cluster.DiskFault(err) {
		return &diskFailed{err}
	}
	if slices.ContainsFunc(temporaryFailures, func(p error) bool { return errors.Is(err, p) }) {
		return err
	}
	return &notStartable{err}
}

// exitCode ends the process with a status and no message, because the command has printed
// everything.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

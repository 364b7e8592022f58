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

// Exit codes. A command exits with 0 if it succeeds, and as grep does with 1 if it succeeds without a
// result.
const (
	exitFailed = 2
	// exitConfig tells a supervisor not to restart the node, because it would fail again. It is
	// EX_CONFIG of sysexits.h.
	exitConfig = 78
	exitDisk   = 70 // the volume is full or fails; package cluster exits with it while the node runs
)

// exitCodeOf returns the exit code for an error.
func exitCodeOf(err error) int {
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

// temporaryFailures are causes of a failed start that may be gone at the next start.
var temporaryFailures = []error{
	cluster.ErrInUse, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENETUNREACH,
}

// wrapStartFailure wraps the error of a failed start, so that exitCodeOf returns exitDisk for a failure
// of the disk, and exitConfig for others. It returns a temporary failure unchanged.
func wrapStartFailure(err error) error {
	if cluster.DiskFault(err) {
		return &diskFailed{err}
	}
	if slices.ContainsFunc(temporaryFailures, func(p error) bool { return errors.Is(err, p) }) {
		return err
	}
	return &notStartable{err}
}

// exitCode is an error that ends the process with this status, and without a message: the command has
// printed all that there is to say.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

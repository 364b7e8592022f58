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

// The exit codes of the program beside 0, 1 for a good answer that holds
// nothing, as grep's, and 70 (EX_SOFTWARE) with which package cluster ends a node
// whose disk failed or stalled.
const (
	exitFailed = 2
	// exitConfig is for who supervises a node: to start it again as it is leads to
	// the same. It is EX_CONFIG of sysexits.h.
	exitConfig = 78
	exitDisk   = 70 // its volume is full or fails
)

// exitOf is the exit code of an error.
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

// notStartable is why a node cannot start before somebody changes something.
type notStartable struct{ error }

// Unwrap is the reason.
func (e *notStartable) Unwrap() error { return e.error }

// diskFailed is why a node cannot start before there is space, or another disk.
type diskFailed struct{ error }

// Unwrap is the reason.
func (e *diskFailed) Unwrap() error { return e.error }

// passing are the failures of a start that may be gone at the next one.
var passing = []error{
	cluster.ErrInUse, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENETUNREACH,
}

// notStarted tells a failure of a start that another start leads to again.
func notStarted(err error) error {
	if cluster.DiskFault(err) {
		return &diskFailed{err}
	}
	if slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
		return err
	}
	return &notStartable{err}
}

// exitCode ends the process with a status and no message: what had to be
// said was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

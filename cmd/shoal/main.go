// Command shoal is the whole product in one binary: it runs a node of the
// cluster (shoal serve) and talks to one (every other command).
//
// The environment is read here and nowhere below; flags win over it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/shard/file"
)

// released is set to yes by the linker at a release: `make dist` does so.
var released = "no"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	// The first signal asks for a clean stop; with the handler gone a second
	// one ends the process at once.
	context.AfterFunc(ctx, stop)

	err := newRoot(os.Getenv).ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}

	var quiet exitCode
	if errors.As(err, &quiet) {
		os.Exit(int(quiet))
	}
	fmt.Fprintln(os.Stderr, "shoal:", err)
	os.Exit(exitOf(err))
}

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
	cluster.ErrInUse, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN,
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

// newRoot builds the command tree. getenv is the only way to the environment.
func newRoot(getenv func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use:           "shoal",
		Short:         "Search code across many repositories, on one node or a shoal of them",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}

	root.AddCommand(
		// Run a node, and ask it.
		newServe(getenv),
		newSearch(getenv),
		newAsk(getenv),
		newModels(getenv),
		newStatus(getenv),
		newDoctor(getenv),
		newLogin(getenv),
		newLogout(getenv),
		newContext(getenv),

		// What is indexed, and what goes on.
		newConfig(getenv),
		newConnection(getenv),
		newRepo(getenv),
		newJobs(getenv),
		newEvents(getenv),
		newAudit(getenv),

		// People, programs and what they may see.
		newKey(getenv),
		newUser(getenv),
		newAgent(getenv),
		newGrant(getenv, "grant EMAIL|ID [REPOSITORY...]", "Let an account see repositories whose permissions are enforced, and list those granted to it", "add"),
		newGrant(getenv, "revoke EMAIL|ID REPOSITORY...", "Take back what was granted to an account", "remove"),

		// Nodes and their catalog.
		newDrain(getenv),
		newUndrain(getenv),
		newLead(getenv),
		newRemove(getenv),
		newUpgrade(getenv),
		newSnapshot(getenv),
		newRecover(getenv),
		newClusterKey(),

		newMCP(getenv),
		newVersion(),
	)

	root.SetHelpCommand(newHelp())
	strict(root)
	return root
}

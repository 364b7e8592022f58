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
	"syscall"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/bench"
)

// version is set by the linker at a release; a build from a checkout tells
// the commit it was built from instead.
var version = "dev" //nolint: written by -ldflags -X only

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
	os.Exit(2)
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
		newServe(getenv),
		newSearch(getenv),
		newStatus(getenv),
		newConfig(getenv),
		newKey(getenv),
		newDrain(getenv),
		newRemove(getenv),
		newSnapshot(getenv),
		newRecover(getenv),
		newClusterKey(),
		newMCP(getenv),
		bench.Command(),
	)
	return root
}

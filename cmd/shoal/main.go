// Command shoal is the whole product in one binary: it runs a node of the
// cluster (shoal serve) and talks to one (every other command).
//
// Only this package reads the environment. Flags override it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	// The first signal ends ctx, for a clean stop, and removes the handler. So a second signal ends the
	// process at once.
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
	os.Exit(exitCodeOf(err))
}

// newRoot builds the command tree. Commands read the environment only through getenv.
func newRoot(getenv func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use:           "shoal",
		Short:         "Search code across many repositories, on one node or a shoal of them",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}

	root.AddCommand(
		// Running a node and using it.
		newServe(getenv),
		newSearch(getenv),
		newAsk(getenv),
		newModels(getenv),
		newStatus(getenv),
		newDoctor(getenv),
		newLogin(getenv),
		newLogout(getenv),
		newContext(getenv),

		// Content and jobs.
		newConfig(getenv),
		newConnection(getenv),
		newHistory(getenv),
		newRepo(getenv),
		newJobs(getenv),
		newEvents(getenv),
		newAudit(getenv),

		// People, programs and permissions.
		newKey(getenv),
		newWatch(getenv),
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
	makeStrict(root)
	return root
}

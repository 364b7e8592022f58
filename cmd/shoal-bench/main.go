// Command shoal-bench measures a shoal program beside its peers. It is no part
// of the product: it starts `shoal serve` and asks it over HTTP.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/shoalsearch/shoal/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	// The first signal stops the nodes and prints what was measured; a second one ends at once.
	context.AfterFunc(ctx, stop)

	err := bench.Command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "shoal-bench:", err)
		os.Exit(1)
	}
}

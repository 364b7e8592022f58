package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/operate"
)

func newDrain(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, nodeNames, &cobra.Command{
		Use:   "drain NODE",
		Short: "Make a node give all it holds to others, so that it can be stopped without a query gap",
		Long: `Makes a node give all it holds to others, take no jobs and no questions, finish
those that it answers (within ten minutes) and vote no more. When
the command ends the node can be stopped: no answer lacks anything without it.
It stays a member; "shoal undrain" takes it back, "shoal remove" forgets it.

The last node that could hold the data is not drained. NODE is the name
of a node, its id, the first characters of that (four at least), or its address.`,
		Args: cobra.ExactArgs(1),
	}, watchDrain)
}

// watchDrain requests the drain of a node every second, and prints its progress until it is done. A
// repeated request changes nothing.
func watchDrain(cmd *cobra.Command, c *client, args []string) error {
	warned := false
	for lastRemaining, lastQuestions := -1, 0; ; {
		var answer operate.DrainResponse
		if err := c.call(cmd.Context(), "POST", "/api/nodes/"+url.PathEscape(args[0])+"/drain", nil, &answer); err != nil {
			return err
		}

		if answer.Warning != "" && !warned {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", answer.Warning)
			warned = true
		}
		if answer.Done {
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds nothing that others lack: it can be stopped\n", namedNode(args[0], answer.Node))
			return nil
		}
		// Remaining does not count hidden repositories, so it may be 0 before the drain is done.
		if answer.Remaining != lastRemaining && answer.Remaining > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s left to copy\n", firstNames(answer.Remaining, nil))
			lastRemaining = answer.Remaining
		}
		if answer.Questions != lastQuestions && answer.Questions > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s still to be answered, within ten minutes\n", catalog.Counted(answer.Questions, "question", "questions"))
			lastQuestions = answer.Questions
		}

		// Ctrl-C ends the watching only. `shoal undrain` stops the drain.
		if !clock.Wait(cmd.Context(), time.Second) {
			return errors.New("the drain goes on without being watched; run the same command to watch it again")
		}
	}
}

// namedNode names a node by what the operator typed and its id, or by its id alone if that was typed.
func namedNode(typed, id string) string {
	if strings.HasPrefix(id, typed) {
		return id
	}
	return cluster.Called(typed, id)
}

func newLead(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, nodeNames, &cobra.Command{
		Use:   "lead NODE",
		Short: "Make a node the leader",
		Long: `Makes a node the leader, as before the machine of the leader is worked on. The
node has to vote; "shoal status" shows which do. A leader that stops or drains
hands over by itself.

NODE is the name of a node, its id, the first characters of that (four at least), or its address.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var answer struct{ Node string }
		if err := c.call(cmd.Context(), "POST", "/api/nodes/"+url.PathEscape(args[0])+"/lead", nil, &answer); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "%s leads\n", namedNode(args[0], answer.Node))
		return nil
	})
}

func newUndrain(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, nodeNames, &cobra.Command{
		Use:   "undrain NODE",
		Short: "Take back a node that is drained",
		Long: `Takes back a node that is being drained, or is drained: it gets data, jobs and a
vote again. What it still has on disk is not copied anew.

NODE is the name of a node, its id, the first characters of that (four at least), or its address.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var answer operate.NodeResponse
		if err := c.call(cmd.Context(), "POST", "/api/nodes/"+url.PathEscape(args[0])+"/undrain", nil, &answer); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "%s is an ordinary node again\n", namedNode(args[0], answer.Node))
		return nil
	})
}

func newRemove(getenv func(string) string) *cobra.Command {
	var acceptLoss bool
	cmd := actionCommand(getenv, nodeNames, &cobra.Command{
		Use:   "remove NODE",
		Short: "Forget a node for good",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// Without accept_loss the API refuses to remove a node with the last copy of some data.
		var answer operate.RemoveResponse
		path := "/api/nodes/" + url.PathEscape(args[0]) + "/remove"
		if acceptLoss {
			path += "?accept_loss=true"
		}
		if err := c.call(cmd.Context(), "POST", path, nil, &answer); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", namedNode(args[0], answer.Node))
		for _, repo := range answer.Lost {
			fmt.Fprintf(cmd.OutOrStdout(), "no copy left, will be indexed again: %s\n", repo)
		}
		return nil
	})

	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false, "also when it holds the last copy of something")
	return cmd
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/tool"
)

func newModels(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "The language models that answer questions",
	}
	cmd.AddCommand(newModelsList(getenv), newModelsCheck(getenv))
	return cmd
}

// noModels is the message if the configuration has no models.
const noModels = `No language model is configured. Add one to "models" in the configuration.`

func newModelsList(getenv func(string) string) *cobra.Command {
	return listing[[]tool.Model]{use: "list", short: "List the configured language models; the first is the default", path: fixedPath("/api/models"), show: printModels}.command(getenv)
}

func printModels(w io.Writer, models []tool.Model) error {
	if len(models) == 0 {
		_, err := fmt.Fprintln(w, noModels)
		return err
	}
	return table(w, "MODEL\tNAME\tUSABLE HERE", models, func(m tool.Model) string {
		usable := "yes"
		if !m.Usable {
			usable = "no: shoal models check says why"
		}
		return fmt.Sprintf("%s/%s\t%s\t%s", m.Provider, m.Model, cmp.Or(m.DisplayName, "-"), usable)
	})
}

func newModelsCheck(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "check",
		Short: "Call each configured language model once, and say what is wrong",
		Long: "Call each configured language model once from the node that is asked, with one tiny tool to call, and say what is wrong.\n" +
			"Each call costs some hundred tokens. Exit status: 0 when every model answers and calls the tool, 1 when one\n" +
			"does not, 2 on an error.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		return checkModels(cmd.Context(), c, cmd.OutOrStdout())
	})
}

// checkModels lets a node call each model, and prints a line for each. It returns exit code 1 if a model
// does not work.
func checkModels(ctx context.Context, c *client, w io.Writer) error {
	var checks []ask.ModelCheck
	if err := c.call(ctx, "POST", "/api/models/check", nil, &checks); err != nil {
		return err
	}

	failed := false
	for _, k := range checks {
		if !k.OK {
			failed = true
			fmt.Fprintf(w, "%s/%s: %s\n", k.Provider, k.Model, k.Problem)
			continue
		}

		took := k.Took.Round(10 * time.Millisecond)
		tokens := catalog.Counted(k.InputTokens+k.OutputTokens, "token", "tokens")
		fmt.Fprintf(w, "%s/%s: ok in %v, %s\n", k.Provider, k.Model, took, tokens)
	}

	if failed {
		return exitCode(1)
	}
	return nil
}

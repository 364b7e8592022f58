package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newModels(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "The language models that answer questions",
	}
	cmd.AddCommand(newModelsList(getenv), newModelsCheck(getenv))
	return cmd
}

// noModels is said where the configuration names none.
const noModels = `No language model is configured. Add one to "models" in the configuration.`

func newModelsList(getenv func(string) string) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured language models; the first is the default",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var models []struct {
				Provider, Model, DisplayName string
				Usable                       bool
			}
			if err := c.call(cmd.Context(), "GET", "/api/models", nil, &models); err != nil {
				return err
			}
			if len(models) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), noModels)
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tNAME\tUSABLE HERE")
			for _, m := range models {
				usable := "yes"
				if !m.Usable {
					usable = "no: shoal models check says why"
				}
				fmt.Fprintf(w, "%s/%s\t%s\t%s\n", m.Provider, m.Model, first(m.DisplayName, "-"), usable)
			}
			return w.Flush()
		},
	}
	f.add(cmd, getenv)
	return cmd
}

func newModelsCheck(getenv func(string) string) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Call each configured language model once, and say what is wrong",
		Long: "Call each configured language model once from the node that is asked, with one tiny tool to call, and say what is wrong.\n" +
			"Each call costs some hundred tokens. Exit status: 0 when every model answers, 1 when one does not, 2 on an error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var checks []struct {
				Provider, Model, Problem  string
				OK                        bool
				TookMs                    int64
				InputTokens, OutputTokens int
			}
			if err := c.call(cmd.Context(), "POST", "/api/models/check", nil, &checks); err != nil {
				return err
			}
			failed := false
			for _, k := range checks {
				took := (time.Duration(k.TookMs) * time.Millisecond).Round(10 * time.Millisecond)
				if k.OK {
					fmt.Fprintf(cmd.OutOrStdout(), "%s/%s: ok in %v, %d tokens\n", k.Provider, k.Model, took, k.InputTokens+k.OutputTokens)
					continue
				}
				failed = true
				fmt.Fprintf(cmd.OutOrStdout(), "%s/%s: %s\n", k.Provider, k.Model, k.Problem)
			}
			if failed {
				return exitCode(1)
			}
			return nil
		},
	}
	f.add(cmd, getenv)
	return cmd
}

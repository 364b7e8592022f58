package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node/operate"
)

// newHistory makes `shoal history`, which takes repositories into the index of commits or leaves them out.
func newHistory(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Index the commits of a repository or not (on a node's host, or with an owner's key)",
		Long: "Index the commits of a repository or not. SHOAL_HISTORY says how far back. The rules here leave repositories out,\n" +
			"or take them in where it is off. The newest rule that fits a name decides. shoal status shows what is covered.",
	}
	cmd.AddCommand(
		listing[operate.HistoryResponse]{use: "list", short: "The rules, the newest first", path: fixedPath("/api/history"), show: printHistoryRules}.command(getenv),
		historyRule(getenv, "include", "include", "Index the commits of repositories whose names match"),
		historyRule(getenv, "exclude", "exclude", "Do not index the commits of repositories whose names match, and delete what is indexed"),
		historyRule(getenv, "forget", "none", "Remove the rule with this glob"),
	)
	return cmd
}

// historyRule makes a command that sets the rule of a glob.
func historyRule(getenv func(string) string, use, rule, short string) *cobra.Command {
	return actionCommand(getenv, naming{}, &cobra.Command{
		Use:     use + " GLOB",
		Short:   short,
		Example: "  shoal history " + use + " 'github.com/acme/legacy-*'",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var r operate.HistoryResponse
		if err := c.call(cmd.Context(), "POST", "/api/history", map[string]string{"glob": args[0], "rule": rule}, &r); err != nil {
			return err
		}
		return printHistoryRules(cmd.OutOrStdout(), r)
	})
}

func printHistoryRules(w io.Writer, r operate.HistoryResponse) error {
	if len(r.Rules) == 0 {
		_, err := fmt.Fprintln(w, "no rules: SHOAL_HISTORY decides")
		return err
	}
	for _, rule := range r.Rules {
		does := "exclude"
		if rule.Include {
			does = "include"
		}
		if _, err := fmt.Fprintf(w, "%s  %s\n", does, oneLine(rule.Glob)); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/config"
)

func newConfig(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration file, apply one, print the schema"}
	cmd.AddCommand(
		newConfigCheck(),
		newConfigApply(getenv),
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema (draft-07) of the configuration file",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", config.Schema())
				return err
			},
		},
	)
	return cmd
}

func newConfigCheck() *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration file (- is standard input); exit 1 and print every error on failure",
		Long: "Validate a configuration file (- is standard input). Every error is printed with its path, and the exit code is 1; warnings\n" +
			"are printed in any case. With --explain, three lists say what of a good file works in this version, what is accepted\n" +
			"without an effect, and what opens something.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return checkConfig(cmd, args[0], explain) },
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "say what works, what has no effect, and what is unsafe")
	return cmd
}

// explainConfig prints the three lists of --explain.
func explainConfig(w io.Writer, e config.Effects) {
	for _, list := range []struct {
		title string
		rows  []config.Error
	}{{"works", e.Works}, {"accepted without effect", e.None}, {"unsafe", e.Unsafe}} {
		fmt.Fprintf(w, "\n%s: %d\n", list.title, len(list.rows))
		for _, r := range list.rows {
			fmt.Fprintf(w, "  %s\n", strings.TrimSuffix(r.Error(), ": "))
		}
	}
}

// newConfigApply is `shoal config apply`: the change of an operator, which wins
// over the files that the nodes have.
func newConfigApply(getenv func(string) string) *cobra.Command {
	var f clientFlags
	var accept bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a file (- is standard input) the cluster's configuration, whatever files its nodes have",
		Long: "Make a file (- is standard input) the cluster's configuration. It stays in force until it is changed here, or the file of a node is.\n" +
			"A change that lets go of more than 20 repositories and of more than half of them is refused without --accept.\n" +
			"The data of a connection that is dropped stays for 24 hours, and comes back without a clone.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readConfig(cmd, args[0])
			if err != nil {
				return err
			}
			c, err := f.client()
			if err != nil {
				return err
			}
			var answer struct {
				Hash        string
				Connections int
				Changed     bool
				Warnings    []string
			}
			path := "/api/config"
			if accept {
				path += "?accept=true"
			}
			if err := c.call(cmd.Context(), "POST", path, rawBody(text), &answer); err != nil {
				return err
			}
			for _, w := range answer.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", args[0], w)
			}
			verb := "is in force now"
			if !answer.Changed {
				verb = "was in force already"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %s, hash %.12s\n", args[0], verb, count(answer.Connections, "connection"), answer.Hash)
			return nil
		},
	}
	f.add(cmd, getenv)
	cmd.Flags().BoolVar(&accept, "accept", false, "also when it lets go of most repositories")
	return cmd
}

// count is a number of things: "1 connection", "2 connections".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// readConfig reads a file, or standard input for "-".
func readConfig(cmd *cobra.Command, path string) ([]byte, error) {
	if path != "-" {
		return os.ReadFile(path)
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), config.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return text, nil
}

func checkConfig(cmd *cobra.Command, path string, explain bool) error {
	text, err := readConfig(cmd, path)
	if err != nil {
		return err
	}
	file, err := config.Parse(text)
	var all config.Errors
	switch {
	case errors.As(err, &all):
		for _, e := range all {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", path, e)
		}
		return exitCode(1)
	case err != nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", path, err)
		return exitCode(1)
	}
	for _, w := range file.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", path, w)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: good, %s, %s\n", path, count(len(file.Connections), "connection"), count(len(file.Warnings), "warning"))
	if explain {
		explainConfig(cmd.OutOrStdout(), config.Explain(text, file))
	}
	return nil
}

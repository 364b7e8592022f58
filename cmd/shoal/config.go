package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/config"
)

func newConfig(func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration file, print its schema"}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "check FILE",
			Short: "Validate a configuration file; exit 1 and print every error on failure",
			Args:  cobra.ExactArgs(1),
			RunE:  func(cmd *cobra.Command, args []string) error { return checkConfig(cmd, args[0]) },
		},
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

func checkConfig(cmd *cobra.Command, path string) error {
	text, err := os.ReadFile(path)
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
	fmt.Fprintf(cmd.OutOrStdout(), "%s: good, %d connections\n", path, len(file.Connections))
	return nil
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/configure"
)

func newConfig(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration file, apply one, print the schema"}
	cmd.AddCommand(newConfigCheck(getenv), newConfigApply(getenv), newConfigSchema())
	return cmd
}

// newConfigSchema makes `shoal config schema`. It needs no node.
func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema (draft-07) of the configuration file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", config.Schema())
			return err
		},
	}
}

// newConfigApply makes `shoal config apply`, which overrides the nodes' files.
func newConfigApply(getenv func(string) string) *cobra.Command {
	var accept bool
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a file (- is standard input) the cluster's configuration, whatever files its nodes have",
		Long: "Make a file (- is standard input) the cluster's configuration. It stays in force until it is changed here, or the file of a node is.\n" +
			"A change that removes more than 20 repositories and more than half of all needs --accept.\n" +
			"The data of a removed connection stays for 24 hours, and comes back without a clone.\n" +
			"On a node's host it may use any secret and local directory. With an owner's key it may use only those that are in use already,\n" +
			"or that the operator allows (shoal serve --config-env and --config-roots).",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		return applyConfig(cmd, c, args[0], accept)
	})
	cmd.Flags().BoolVar(&accept, "accept", false, "also when it lets go of most repositories")
	return cmd
}

// applyConfig makes a file the cluster's configuration, and prints its warnings and the result. Without
// accept the node refuses a change that removes most repositories.
func applyConfig(cmd *cobra.Command, c *client, file string, accept bool) error {
	text, err := readConfig(cmd, file)
	if err != nil {
		return err
	}

	var answer configure.ApplyConfigResponse

	path := "/api/config"
	if accept {
		path += "?accept=true"
	}
	if err := c.call(cmd.Context(), "POST", path, rawBody(text), &answer); err != nil {
		return err
	}

	for _, w := range answer.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", file, w)
	}
	verb := "is in force now"
	if !answer.Changed {
		verb = "was in force already"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %s, hash %.12s\n",
		file, verb, catalog.Counted(answer.Connections, "connection", "connections"), answer.Hash)
	return nil
}

// readConfig reads a file, or standard input for "-".
func readConfig(cmd *cobra.Command, path string) ([]byte, error) {
	if strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return nil, fmt.Errorf("%s is an address: save it as a file first, and name that file", path)
	}
	if path != "-" {
		return os.ReadFile(path)
	}

	// Read one byte above the limit, so that the parser reports a file that is too large.
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), config.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return text, nil
}

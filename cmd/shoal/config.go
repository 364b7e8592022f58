package main

import (
	"cmp"
	"errors"
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

// configCheck has the flags of `shoal config check`.
type configCheck struct {
	explain, online bool
	env             string // file of variables; "" for none
	getenv          func(string) string
}

func newConfigCheck(getenv func(string) string) *cobra.Command {
	check := configCheck{getenv: getenv}
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration file (- is standard input); exit 1 and print every error on failure",
		Long: "Validate a configuration file (- is standard input) and say what each connection will list. It prints every error with its\n" +
			"path, and the warnings of a good file. If a file is no JSON, it prints the first error.\n" +
			"--explain lists what works, what has no effect, and what opens something. --online asks each host from here, with the\n" +
			"variables of this shell. It prints the first repositories, and what the host tells of the token. --env explains each variable\n" +
			"of that file. The exit code is 1 for an error, a host that does not list, or a variable that would stop a node.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return check.run(cmd, args[0]) },
	}

	cmd.Flags().BoolVar(&check.explain, "explain", false, "say what works, what has no effect, and what is unsafe")
	cmd.Flags().BoolVar(&check.online, "online", false, "ask each host for its first repositories")
	cmd.Flags().StringVar(&check.env, "env", "", "file of variables, as of docker or systemd: say what a node makes of each")
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

// applyConfig sends a configuration to the cluster and prints the result.
func applyConfig(cmd *cobra.Command, c *client, file string, accept bool) error {
	text, err := readConfig(cmd, file)
	if err != nil {
		return err
	}

	var answer configure.ApplyConfigResponse

	// Without --accept, a mistake in the file could remove what took days to index.
	path := "/api/config"
	if accept {
		path += "?accept=true"
	}
	if err := c.call(cmd.Context(), "POST", path, rawBody(text), &answer); err != nil {
		return err
	}

	// Print warnings to standard error, apart from the result.
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

	// One byte above the limit lets the parser report that the file is too large.
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), config.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return text, nil
}

// run validates a file, and prints what its connections will list.
func (k *configCheck) run(cmd *cobra.Command, path string) error {
	// An unreadable file is no invalid configuration: exit code 2, not 1.
	text, err := readConfig(cmd, path)
	if err != nil {
		return err
	}

	file, err := config.Parse(text)

	// Print all errors at once, so that they can be fixed together.
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

	// Results go to standard output, warnings to standard error, as in a compiler.
	out := cmd.OutOrStdout()

	for _, w := range file.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", path, w)
	}
	fmt.Fprintf(out, "%s: good, %s, %s\n", path,
		catalog.Counted(len(file.Connections), "connection", "connections"), catalog.Counted(len(file.Warnings), "warning", "warnings"))

	for _, conn := range file.Connections {
		explainConnection(out, conn)
	}

	named := namedVariables(text, file)
	if k.env == "" {
		warnUnset(cmd.ErrOrStderr(), path, named, k.getenv)
	} else {
		if good, err := checkEnvFile(cmd, k.env, named); err != nil || !good {
			return cmp.Or(err, error(exitCode(1)))
		}
	}

	// Asking the hosts comes last, because each may take a minute.
	if k.explain {
		explainConfig(out, config.Explain(text, file))
	}
	if k.online {
		return tryConnections(cmd.Context(), out, file, k.getenv)
	}
	return nil
}

// explainConnection prints what a connection will list.
func explainConnection(w io.Writer, conn config.Connection) {
	lists, leavesOut := config.Selection(conn)
	if len(lists) == 0 {
		lists = []string{"nothing: no owner, group, project or repository is named"}
	}
	fmt.Fprintf(w, "  %s (%s) lists %s\n", conn.Shared().Name, conn.Kind(), strings.Join(lists, "; "))
	if len(leavesOut) > 0 {
		fmt.Fprintf(w, "    leaves out %s\n", strings.Join(leavesOut, "; "))
	}
}

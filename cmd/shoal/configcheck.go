package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// configCheck has the flags of `shoal config check`.
type configCheck struct {
	explain, online bool
	env             string // file of variables; "" for none
	getenv          func(string) string
}

// checkReport is what --json prints.
type checkReport struct {
	File        string             `json:"file"`
	Good        bool               `json:"good"`
	Errors      []config.Error     `json:"errors,omitempty"`
	Warnings    []config.Error     `json:"warnings,omitempty"`
	Connections []connectionReport `json:"connections,omitempty"`
	Unset       []string           `json:"unset,omitempty"`     // secrets that this shell, or the file of variables, lacks
	Variables   []variableReport   `json:"variables,omitempty"` // of --env
	Exported    []string           `json:"exported,omitempty"`  // variables of lines that systemd and docker skip
	Effects     *config.Effects    `json:"effects,omitempty"`   // of --explain
	Hosts       []hostReport       `json:"hosts,omitempty"`     // of --online
}

// connectionReport says what a connection lists.
type connectionReport struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Lists     []string `json:"lists"`
	LeavesOut []string `json:"leavesOut,omitempty"`
}

func newConfigCheck(getenv func(string) string) *cobra.Command {
	check := configCheck{getenv: getenv}
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration file (- is standard input); exit 1 and print every error on failure",
		Long: "Validate a configuration file (- is standard input) and say what each connection will list. It prints every error with its\n" +
			"path, and the warnings of a good file. If a file is no JSON, it prints the first error.\n" +
			"--explain lists what works, what has no effect, and what opens something. --online asks each host from here, with the\n" +
			"variables of this shell. It prints the first repositories, and what the host tells of the token. --env explains each variable\n" +
			"of that file. The exit code is 1 for an error, a host that does not list, or a variable that would stop a node.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report := &checkReport{File: args[0]}
			if !*asJSON {
				return check.run(cmd, args[0], report)
			}

			// Discard the text output: the report says the same.
			out := cmd.OutOrStdout()
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			err := check.run(cmd, args[0], report)
			if code := exitCode(0); err != nil && !errors.As(err, &code) {
				return err
			}
			report.Good = err == nil
			return cmp.Or(printJSON(out, report), err)
		},
	}

	cmd.Flags().BoolVar(&check.explain, "explain", false, "say what works, what has no effect, and what is unsafe")
	cmd.Flags().BoolVar(&check.online, "online", false, "ask each host for its first repositories")
	cmd.Flags().StringVar(&check.env, "env", "", "file of variables, as of docker or systemd: say what a node makes of each")
	asJSON = jsonFlag(cmd)
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

// run validates a file, prints its errors or what its connections will list, and fills in report. It
// returns exit code 1 for an invalid file or variable, or a host that does not list.
func (k *configCheck) run(cmd *cobra.Command, path string, report *checkReport) error {
	// A file that cannot be read gets exit code 2, because it may be valid.
	text, err := readConfig(cmd, path)
	if err != nil {
		return err
	}

	file, err := config.Parse(text)

	var all config.Errors
	switch {
	case errors.As(err, &all):
		report.Errors = all
		for _, e := range all {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", path, e)
		}
		return exitCode(1)
	case err != nil:
		report.Errors = []config.Error{{Message: err.Error()}}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", path, err)
		return exitCode(1)
	}

	out := cmd.OutOrStdout()

	report.Warnings = file.Warnings
	for _, w := range file.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", path, w)
	}
	fmt.Fprintf(out, "%s: good, %s, %s\n", path,
		catalog.Counted(len(file.Connections), "connection", "connections"), catalog.Counted(len(file.Warnings), "warning", "warnings"))

	for _, conn := range file.Connections {
		report.Connections = append(report.Connections, explainConnection(out, conn))
	}

	named := namedVariables(text, file)
	if k.env == "" {
		report.Unset = warnUnset(cmd.ErrOrStderr(), path, named, k.getenv)
	} else if good, err := checkEnvFile(cmd, k.env, named, report); err != nil || !good {
		return cmp.Or(err, error(exitCode(1)))
	}

	// Ask the hosts last, because each may take a minute.
	if k.explain {
		effects := config.Explain(text, file)
		report.Effects = &effects
		explainConfig(out, effects)
	}
	if k.online {
		report.Hosts, err = tryConnections(cmd.Context(), out, file, k.getenv)
	}
	return err
}

// explainConnection prints what a connection will list, and returns it.
func explainConnection(w io.Writer, conn config.Connection) connectionReport {
	lists, leavesOut := config.Selection(conn)
	if len(lists) == 0 {
		lists = []string{"nothing: no owner, group, project or repository is named"}
	}
	fmt.Fprintf(w, "  %s (%s) lists %s\n", conn.Shared().Name, conn.Kind(), strings.Join(lists, "; "))
	if len(leavesOut) > 0 {
		fmt.Fprintf(w, "    leaves out %s\n", strings.Join(leavesOut, "; "))
	}
	return connectionReport{conn.Shared().Name, string(conn.Kind()), lists, leavesOut}
}

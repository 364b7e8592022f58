package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// makeStrict makes a command and its subcommands refuse unknown commands, arguments and flags. By
// default cobra prints the help for an unknown subcommand, and reports success.
func makeStrict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		makeStrict(sub)
	}

	switch {
	case cmd.HasSubCommands():
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = runGroup

	case cmd.Args != nil: // cobra's message does not say how to call the command: replace it
		checkArgs := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if checkArgs(cmd, args) != nil {
				return markWrongCall(cmd, fmt.Errorf("want: %s", cmd.UseLine()))
			}
			return nil
		}
	}

	cmd.SetFlagErrorFunc(explainBadFlag)
}

// runGroup runs a command that only has subcommands: without arguments it prints the help, otherwise it
// fails.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand returns the error for an unknown subcommand, with similar names.
func unknownCommand(cmd *cobra.Command, name string) error {
	// Do not list hidden commands.
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}

	// cobra would set this default later, in a check that does not run here.
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}

	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q for %q: did you mean %s?", name, cmd.CommandPath(), strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q for %q: there are %s", name, cmd.CommandPath(), strings.Join(known, ", "))
}

// explainBadFlag adds advice to the error of an invalid flag that may be a query.
func explainBadFlag(cmd *cobra.Command, err error) error {
	// A query such as -file:test looks like a flag. Only the text of cobra's error identifies this case.
	text := err.Error()
	if strings.HasPrefix(text, "unknown") && strings.Contains(cmd.Use, "QUERY") {
		text += fmt.Sprintf("; a query that begins with a dash stands behind two: %s -- '-file:test foo'", cmd.CommandPath())
	}
	return markWrongCall(cmd, errors.New(text))
}

// markWrongCall wraps the error of a wrong call of `serve`, so that its exit code tells a supervisor not
// to restart it. It returns errors of other commands unchanged.
func markWrongCall(cmd *cobra.Command, err error) error {
	if cmd.Name() == "serve" {
		return &notStartable{err}
	}
	return err
}

// newHelp makes the command help, which fails for an unknown topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			// Find returns the last known command in args and the remaining words.
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(about, append(rest, args...)[0])
			}

			// Add the flag --help, which cobra adds only when a command runs.
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

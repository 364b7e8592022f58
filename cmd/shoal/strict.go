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

	// cobra's message names no command, so replace it.
	case cmd.Args != nil:
		count := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if count(cmd, args) != nil {
				return markWrongCall(cmd, fmt.Errorf("want: %s", cmd.UseLine()))
			}
			return nil
		}
	}

	cmd.SetFlagErrorFunc(explainBadFlag)
}

// runGroup runs a command that only has subcommands.
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

	// cobra sets this default only in a check that is not reached here.
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}

	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q for %q: did you mean %s?", name, cmd.CommandPath(), strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q for %q: there are %s", name, cmd.CommandPath(), strings.Join(known, ", "))
}

// explainBadFlag explains an invalid flag.
func explainBadFlag(cmd *cobra.Command, err error) error {
	// A query such as -file:test looks like a flag. Only cobra's message identifies this case.
	text := err.Error()
	if strings.HasPrefix(text, "unknown") && strings.Contains(cmd.Use, "QUERY") {
		text += fmt.Sprintf("; a query that begins with a dash stands behind two: %s -- '-file:test foo'", cmd.CommandPath())
	}
	return markWrongCall(cmd, errors.New(text))
}

// markWrongCall wraps the error of a wrong call of `serve`, so that a supervisor does not repeat it.
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
			// Find returns the nearest known command and the remaining words.
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(about, append(rest, args...)[0])
			}

			// cobra adds the flag --help only to commands that run.
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// strict makes a tree of commands refuse what it does not know: a group of
// commands has no arguments of its own, and every command says how it is
// called when it was called in another way. The library would print the help
// of a group and call that success.
func strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strict(sub)
	}

	switch {
	case cmd.HasSubCommands():
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = group

	// The library's message names no command; this one does.
	case cmd.Args != nil:
		count := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if count(cmd, args) != nil {
				return misused(cmd, fmt.Errorf("want: %s", cmd.UseLine()))
			}
			return nil
		}
	}

	cmd.SetFlagErrorFunc(badFlag)
}

// group runs a command that only holds others.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(cmd *cobra.Command, name string) error {
	// Hidden commands are not offered.
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}

	// The library sets its usual distance only in its own check, which is not reached here.
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}

	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q for %q: did you mean %s?", name, cmd.CommandPath(), strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q for %q: there are %s", name, cmd.CommandPath(), strings.Join(known, ", "))
}

// badFlag says what is wrong with a flag in words of the command line.
func badFlag(cmd *cobra.Command, err error) error {
	// A query such as -file:test looks like a flag, and is found by the message alone.
	text := err.Error()
	if strings.HasPrefix(text, "unknown") && strings.Contains(cmd.Use, "QUERY") {
		text += fmt.Sprintf("; a query that begins with a dash stands behind two: %s -- '-file:test foo'", cmd.CommandPath())
	}
	return misused(cmd, errors.New(text))
}

// misused is a wrong call of a command. A node that is called so is not to be
// started again as it is.
func misused(cmd *cobra.Command, err error) error {
	if cmd.Name() == "serve" {
		return &notStartable{err}
	}
	return err
}

// newHelp is the command help, which fails where there is no such topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			// Find gives the nearest command it knows and leaves the words that are none.
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(about, append(rest, args...)[0])
			}

			// The library adds --help when a command runs, and this one only describes it.
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

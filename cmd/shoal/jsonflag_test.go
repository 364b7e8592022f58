package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// textOnly are the commands without --json, with the reason.
var textOnly = map[string]string{
	"shoal serve":         "runs a node; --log-format is about its log",
	"shoal mcp":           "speaks JSON to an agent",
	"shoal config schema": "prints JSON",
}

// Every command has --json for scripts.
func TestEveryCommand_hasTheJSONFlag(t *testing.T) {
	t.Parallel()
	root := newRoot(func(string) string { return "" })
	var without []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
			if !sub.HasSubCommands() && !sub.Hidden && sub.Name() != "help" && sub.Flag("json") == nil {
				without = append(without, sub.CommandPath())
			}
		}
	}
	walk(root)
	for _, name := range without {
		if textOnly[name] == "" {
			t.Errorf("%s has no --json", name)
		}
	}
	for name := range textOnly {
		if !slices.Contains(without, name) {
			t.Errorf("%s has --json now, or is gone", name)
		}
	}
}

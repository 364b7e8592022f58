package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// textOnly are the commands without --json, with the reason.
var textOnly = map[string]string{
	"shoal serve":            "runs a node",
	"shoal mcp":              "speaks JSON to an agent",
	"shoal ask":              "prints an answer as it comes",
	"shoal login":            "asks a person",
	"shoal logout":           "changes a file of this machine",
	"shoal context use":      "changes a file of this machine",
	"shoal context list":     "reads a file of this machine",
	"shoal cluster-key new":  "makes a file",
	"shoal config schema":    "prints JSON",
	"shoal config check":     "has its exit code",
	"shoal snapshot save":    "makes a file",
	"shoal snapshot restore": "makes a data directory",
	"shoal recover":          "changes a data directory",
	"shoal upgrade next":     "prints the name of a node",
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

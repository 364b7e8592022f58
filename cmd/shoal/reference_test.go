package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewriteReference = flag.Bool("rewrite-reference", false, "write the pages of docs/reference that are printed from the code")

// The pages of the reference are printed from the code.
func TestReferenceIsPrintedFromTheCode(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]func(t *testing.T) string{
		"commands":            func(*testing.T) string { return commandReference(newRoot(func(string) string { return "" })) },
		"configuration":       configurationReference,
		"flags-and-variables": variableReference,
		"api":                 apiReference,
		"tools":               toolReference,
		"metrics":             metricReference,
		"alerts":              alertReference,
		"audit-actions":       auditReference,
		"files-on-disk":       fileReference,
		"limits":              limitReference,
		"queries":             queryReference,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, want := filepath.Join("..", "..", "docs", "reference", name+".md"), page(t)
			if *rewriteReference {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("%s is not what the code says: go test ./cmd/shoal -run TestReferenceIsPrintedFromTheCode -rewrite-reference", path)
			}
		})
	}
}

// nodeFlags are the flags for the node and key of a command.
var nodeFlags = []string{"ca-file", "data-dir", "key", "url"}

// commandReference prints each command with its flags.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page is printed from the program, as `--help` is.\n\n" +
		"| exit code | means | restart a node? |\n|---|---|---|\n| 0 | done, or told to stop | |\n| 1 | the answer is no, as of `shoal status --check` | |\n" +
		"| 2 | it failed | yes |\n| 70 | the disk failed, stalled or was full | after a look at the disk |\n| 78 | something must change first | no |\n")
	status, _, _ := root.Find([]string{"status"})
	b.WriteString("\nA command that asks a node also takes these:\n\n| flag | meaning |\n|---|---|\n")
	for _, name := range nodeFlags {
		writeFlag(&b, status.Flag(name))
	}

	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			if !sub.HasAvailableSubCommands() {
				writeCommand(&b, sub)
			}
			walk(sub)
		}
	}
	walk(root)
	return b.String()
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n    %s\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."), c.UseLine())
	first := true
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || c.Name() != "serve" && slices.Contains(nodeFlags, f.Name) {
			return
		}
		if first {
			b.WriteString("\n| flag | meaning |\n|---|---|\n")
			first = false
		}
		writeFlag(b, f)
	})
}

func writeFlag(b *strings.Builder, f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	name := strings.TrimSpace("--" + f.Name + " " + kind)
	fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", "\\|"))
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// quotedCommand matches commands of this program in a document: in backquotes, and at the
// beginning of an example's line.
var quotedCommand = regexp.MustCompile("(?:`|\\n    (?:bin/)?)shoal ([^`\\n]+)")

// Every command and flag in a document exists. A wrong one would fail when a user needs it.
func TestDocumentation_commandsAndFlagsExist(t *testing.T) {
	t.Parallel()
	root := newRoot(func(string) string { return "" })
	found := 0
	for _, glob := range []string{"*.md", "docs/*.md", "docs/*/*.md", "*/DESIGN.md", "ops/*", "api/openapi.json", "node/host/issue.go"} {
		files, err := filepath.Glob(filepath.Join("..", "..", glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %q, %v", glob, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range quotedCommand.FindAllStringSubmatch(string(text), -1) {
				found++
				if wrong := notThere(root, m[1]); wrong != "" {
					t.Errorf("%s names shoal %s: there is no %s", filepath.Base(file), m[1], wrong)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands are named: they are no longer read rightly", found)
	}
}

// notThere returns the first word of a command line that is no command or flag, "" for none. In
// words such as user|agent list each is checked.
func notThere(root *cobra.Command, line string) string {
	line, _, _ = strings.Cut(line, " #")
	at := root
	for _, word := range strings.Fields(line) {
		name, isFlag := strings.CutPrefix(strings.TrimLeft(word, "["), "--")
		name = regexp.MustCompile(`^[a-z][a-z-]*`).FindString(name)
		switch {
		case isFlag && name != "help" && at.Flag(name) == nil:
			return "flag --" + name
		case isFlag || !at.HasAvailableSubCommands():
			continue
		}

		// If a command has subcommands, the next word is one or several of them.
		for each := range strings.SplitSeq(strings.Trim(word, ".,;:"), "|") {
			next, _, err := at.Find([]string{each})
			if each == "completion" || each == "help" {
				return "" // made when the program runs
			}
			if err != nil || next == at {
				return "command " + each
			}
			if !strings.Contains(word, "|") {
				at = next
			}
		}
		if strings.Contains(word, "|") {
			return ""
		}
	}
	return ""
}

package tool_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/tool"
)

var listedCommit = regexp.MustCompile(`(?m)^([0-9a-f]{10}) \d{4}-`)

// TestListCommits_findsTheChangesThatGitFinds compares changes and changesRegex, by the index of changes,
// with git log -S and -G. A file that is moved within the path changes nothing there.
func TestListCommits_findsTheChangesThatGitFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := empty(t, filepath.Join(dir, "r"))
	file := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	for i, files := range []map[string]string{
		{"a.go": file("one", "two", "Guess(1)", "three"), "lib/b.go": file("x", "y")},
		{"a.go": file("Guess(1)", "one", "two", "three")},               // it moved
		{"a.go": file("Guess(2)", "one", "two", "three")},               // the line changed, the text stayed
		{"a.go": file("Guess(2) Guess(3)", "one", "two", "three")},      // it came once more
		{"a.go": file("one", "two", "three"), "lib/b.go": "Guess(2)\n"}, // it went from one file into another
		{"lib/c.go": "Guess(2)\nescape\n", "lib/b.go": ""},
		{"lib/c.go": "capital\n", "d.go": "moved\nlater\n"},
		{"d.go": "", "lib/d.go": "moved\nlater\n"}, // within lib it came
	} {
		r.CommitAs("Ada Bell", day(i+1), fmt.Sprintf("Change %d: escape the capital", i), files)
	}
	r.Git("checkout", "-q", "-b", "side", "main~2")
	r.CommitAs("Ben Cole", day(9), "Change on the side", map[string]string{"side.go": "Guess(9)\n"})
	r.Git("checkout", "-q", "main")
	r.Git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")

	n := nodetest.Start(t, sampleConfig(dir))
	n.WaitIndexed(1)
	n.WaitHistory()
	tools := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse})
	listed := func(arguments map[string]any) (hashes []string) {
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		answer := tools.Call(t.Context(), catalog.Operator(), "list_commits", text)
		if answer.Failed || !strings.HasSuffix(answer.Text, "Complete.") {
			t.Errorf("%s: %s", text, answer.Text)
		}
		for _, m := range listedCommit.FindAllStringSubmatch(answer.Text, -1) {
			hashes = append(hashes, m[1])
		}
		return hashes
	}

	for _, text := range []string{"Guess", "Guess(2)", "one", "x", "y", "escape", "cap", "nowhere", "moved", "("} {
		for _, path := range []string{"", "lib", "a.go"} {
			for flag, name := range map[string]string{"-S": "changes", "-G": "changesRegex"} {
				wanted := text
				if flag == "-G" {
					wanted = regexp.QuoteMeta(text)
				}
				git := []string{"log", "--abbrev=10", "--format=%h", "--find-renames", flag + text}
				if flag == "-G" {
					git[4] = flag + strings.NewReplacer("(", "[(]", ")", "[)]").Replace(text)
				}
				arguments := map[string]any{"repo": "r", name: wanted}
				if path != "" {
					git, arguments["path"] = append(git, "--", path), path
				}
				want := strings.Fields(r.Git(git...))
				if got := listed(arguments); !slices.Equal(got, want) {
					t.Errorf("%v: %q, git finds %q", arguments, got, want)
				}
				if path == "" {
					delete(arguments, "repo")
					if got := listed(arguments); !slices.Equal(got, want) {
						t.Errorf("in all repositories, %v: %q, git finds %q", arguments, got, want)
					}
				}
			}
		}
	}

	// A word of a message begins a word there, whoever searches it.
	for query, want := range map[string]int{"cap": 8, "scape": 0, "side": 2, "\"the side\"": 2, "esc cap": 8} {
		for _, arguments := range []map[string]any{{"repo": "r", "query": query}, {"query": query}} {
			if got := listed(arguments); len(got) != want {
				t.Errorf("%v: %d commits, want %d", arguments, len(got), want)
			}
		}
	}

	// What is not there is no repository without commits.
	text := tools.Call(t.Context(), catalog.Operator(), "list_commits", json.RawMessage(`{"repo":"nothing","changes":"Guess"}`)).Text
	if !strings.Contains(text, "not found") {
		t.Errorf("an unknown repository: %s", text)
	}
}

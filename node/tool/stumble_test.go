package tool_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/tool"
)

// TestToolAnswers_preventKnownMistakesOfAgents makes the calls after which agents believed something
// false, or did not know how to go on. Each row says what the answer has to have
// and what it must not have.
func TestToolAnswers_preventKnownMistakesOfAgents(t *testing.T) {
	t.Parallel()
	_, tools := sample(t)
	for _, tt := range []struct {
		what, tool, arguments, want, not string
	}{
		{"a file that is kept by name only is searched", "grep", `{"pattern":"needle in the","repo":"acme/app","include":"docs/large.txt"}`, "2001: needle in the haystack", "No line"},
		{"what was not searched is not complete", "grep", `{"pattern":"needle in the haystack"}`, "Not searched: kept by name only: ", "Complete"},
		{"nor for a symbol that was not found", "find_symbol_references", `{"symbol":"haystick","repo":"example.com/acme/app"}`, "Not searched: kept by name only: docs/large.txt (larger", "Complete"},
		{"an argument that there is not is refused", "find_symbol_definitions", `{"symbol":"evict","repo":"acme/app","snapshot":"v1.0.0"}`, `there is no parameter "snapshot"`, "1 definition"},
		{"a revision by another name is taken", "find_symbol_definitions", `{"symbol":"evict","repo":"acme/app","revision":"v1.0.0"}`, "No definition of evict", "1 definition"},
		{"names of other tools are taken", "grep", `{"pattern":"close","repo":"acme/app","-i":true,"output_mode":"count"}`, "21 matches in 5 files", "Wrong"},
		{"lines may be named with the file", "read_file", `{"repo":"acme/app","path":"store/store.go:12-13"}`, "12: type Store struct {\n\tmu ", "14: "},
		{"as in a link", "read_file", `{"repo":"acme/app","path":"store/store.go#L12-L13"}`, "12: type Store struct {\n\tmu ", "14: "},
		{"or one line", "read_file", `{"repo":"acme/app","path":"store/store.go#L12"}`, "12: type Store struct {\n", "13: "},
		{"a glob without a slash is of any depth", "grep", `{"pattern":"retryReplica","repo":"acme/app","include":"*.go"}`, "store/replica.go", "No line"},
		{"one with a slash in front is of the root", "grep", `{"pattern":"retryReplica","repo":"acme/app","include":"/*.go"}`, "No line", "store/replica.go"},
		{"globs that exclude", "grep", `{"pattern":"Close","repo":"acme/app","include":["*.go","!*_test.go"]}`, "store/store.go", "store_test.go"},
		{"a path that there is not is no empty answer", "grep", `{"pattern":"Close","repo":"acme/app","path":"sto"}`, "not found", "Complete"},
		{"nor for glob", "glob", `{"pattern":"*.go","repo":"acme/app","path":"sto"}`, "not found", "Complete"},
		{"a path may be a file", "grep", `{"pattern":"Close","repo":"acme/app","path":"store/store.go"}`, "34: func (s *Store) Close() error {", "cmd/main.go"},
		{"a qualified name is looked for by its last part", "find_symbol_references", `{"symbol":"Store.Close","repo":"acme/app","calls":true}`, "2 calls of Close in 2 files", "0 calls"},
		{"and the answer says so", "find_symbol_references", `{"symbol":"store::Store::Close","repo":"acme/app"}`, "the receiver is not resolved", ""},
		{"a branch of all repositories", "grep", `{"pattern":"func Answer","ref":"main"}`, "func Answer() int", "not indexed"},
		{"a branch that only one has", "glob", `{"pattern":"**/replica.go","ref":"release"}`, "with repo it is searched", "Complete"},
		{"every page of a difference can be reached", "get_diff", `{"repo":"acme/app","base":"v1.0.0","head":"main","mode":"patch","maxTokens":500}`, `"page":2`, "read the file itself"},
		{"a repository that is nearly so is refused", "grep", `{"pattern":"ErrClosed","repo":"acme/ap"}`, `Did you mean example.com/acme/app? list_repos shows all. Mended: the same and {"repo":"example.com/acme/app"}`, "matching"},
		{"as one of another host", "grep", `{"pattern":"ErrClosed","repo":"github.com/acme/app"}`, `Did you mean example.com/acme/app? list_repos shows all. Mended: the same and`, "matching"},
		{"also where the file is not there either", "read_file", `{"repo":"acme/ap","path":"README.txt"}`, `Repository "acme/ap" not found. Did you mean example.com/acme/app?`, "File"},
		{"case makes no other repository", "grep", `{"pattern":"ErrClosed","repo":"Example.com/Acme/App"}`, "4 matching lines", "There is no"},
		{"nor does .git", "grep", `{"pattern":"ErrClosed","repo":"acme/app.git"}`, "4 matching lines", ""},
		{"nor an address", "grep", `{"pattern":"ErrClosed","repo":"https://user@example.com/acme/app.git/"}`, "4 matching lines", ""},
		{"nor one of ssh", "grep", `{"pattern":"ErrClosed","repo":"git@example.com:acme/app.git"}`, "4 matching lines", ""},
		{"nor one of ssh as a URL", "grep", `{"pattern":"ErrClosed","repo":"ssh://git@example.com/acme/app"}`, "4 matching lines", ""},
		{"a short name is enough", "grep", `{"pattern":"ErrClosed","repo":"APP"}`, "4 matching lines", ""},
		{"one that two could be", "grep", `{"pattern":"x","repo":"acme/aib"}`, "Did you mean example.com/acme/", "matching"},
		{"a search for one", "list_repos", `{"query":"libb"}`, "Near names: example.com/acme/lib", ""},
		{"a name of another kind is no similar name", "find_symbol_definitions", `{"symbol":"evict","repo":"acme/app","kind":"method","match":"fuzzy"}`, "No definition of evict with this kind; without:\n1 definition of evict", "Similar"},
		{"a symbol with wrong letters", "find_symbol_definitions", `{"symbol":"evitc","repo":"acme/app"}`, "No definition of evitc found. The nearest name:\n1 definition of evict", ""},
		{"and its uses", "find_symbol_references", `{"symbol":"retryReplicaz","repo":"acme/app"}`, "Similar names: retryReplica", "As text"},
		{"a label is no use", "find_symbol_references", `{"symbol":"done","repo":"acme/app"}`, "labels 2 not shown", "goto"},
		{"who calls is told by name", "find_symbol_references", `{"symbol":"free_one","repo":"acme/app","calls":true}`, "8 in evict: p->used", "evict.h"},
		{"what is wrong with an argument is shown mended", "grep", `{"pattern":"Close","include":7}`, "include", `{"pattern":"func main"}`},
		{"words of a message in any order", "list_commits", `{"repo":"acme/app","query":"replication retry"}`, "Retry replication with back-off", "No commit"},
		{"a tool of another name", "Grep", `{"pattern":"Close"}`, "did you mean grep?", ""},
		{"the product's own comes before what others wrote", "find_symbol_definitions", `{"symbol":"Close","repo":"acme/app"}`, "store/store.go\n34 [method in struct store.Store]: func (s *Store) Close() error {\nvendor/", ""},
		{"matches over several lines", "grep", `{"pattern":"backoff \\*= 2\\n\\t}","repo":"acme/app"}`, "store/replica.go", "No line"},
		{"a class does not match the end of a line", "grep", `{"pattern":"^\\s*// (Store|Get)","repo":"acme/app","path":"store/store.go"}`, "2 matching lines in 1 file\nstore/store.go\n11: ", "10: "},
		{"a match over lines that is hidden is counted", "grep", `{"pattern":"backoff[^x]*\\}$","repo":"acme/app"}`, "No line matches", "Complete"},
		{"and the advised call finds it", "grep", `{"pattern":"type Store[^}]*closed bool","repo":"acme/app"}`, `Left out: 1 more over lines: the same and {"pattern":"(?s)type Store[^}]*closed bool"}.`, "Complete"},
		{"under (?s) a class that excludes matches line ends", "grep", `{"pattern":"(?s)type Store[^}]*closed bool","repo":"acme/app"}`, "1 match on 4 lines in 1 file", "No line"},
		{"globs with commas between them are several", "grep", `{"pattern":"Close","repo":"acme/app","include":"cmd/**/*.go, *.md"}`, "README.md", "store.go"},
		{"one that no file matches is told", "grep", `{"pattern":"Close","repo":"acme/app","include":"**/*.go,*.rst"}`, `Not searched: include "*.rst" matches no file.`, "Complete"},
		{"with the one that is meant", "grep", `{"pattern":"Close","repo":"acme/app","include":"go"}`, `Not searched: include "go" matches no file, "*.go" does.`, "Complete"},
		{"for search too", "search", `{"query":"close store","repo":"acme/app","include":"rst"}`, `include "rst" matches no file`, "Complete"},
		{"and for symbols", "find_symbol_references", `{"symbol":"Close","repo":"acme/app","include":"*.rst"}`, `include "*.rst" matches no file`, "Complete"},
		{"the name of a directory matches", "grep", `{"pattern":"Close","repo":"acme/app","include":"store"}`, "Complete.", "matches no"},
		{"one of several patterns", "glob", `{"pattern":"*.md,*.rst","repo":"acme/app"}`, `Not searched: pattern "*.rst" matches no file.`, "Complete"},
		{"a name is taken as it is written", "read_file", `{"path":"src/größe \\ufffd.c","repo":"acme/app"}`, "odd_name", "not found"},
		{"as an argument", "grep", `{"pattern":"odd_name","path":"src/größe \ufffd.c","repo":"acme/app"}`, "src/größe \\ufffd.c\n", "not found"},
		{"by history", "list_commits", `{"path":"src/größe \ufffd.c","repo":"acme/app"}`, "Retry replication", "No commit"},
		{"by a listing", "blame", `{"path":"src/größe \\ufffd.c","repo":"acme/app"}`, "Ben Cole", "not found"},
		{"a match over lines is one", "grep", `{"pattern":"mu.Lock.*\\n.*Unlock","repo":"acme/app"}`, "2 matches on 4 lines in 1 file", "matching lines"},
		{"a file with wrong letters", "glob", `{"pattern":"evcit.c","repo":"acme/app"}`, "src/evict.c", ""},
		{"what has not changed is told by an old revision", "find_symbol_definitions", `{"symbol":"retryReplica","repo":"acme/app","ref":"v1.0.0"}`, "No definition", "replica.go\n6"},
	} {
		got := tools.Call(t.Context(), catalog.Operator(), tt.tool, json.RawMessage(tt.arguments)).Text
		if !strings.Contains(got, tt.want) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: %s %s: want %q, not %q:\n%s", tt.what, tt.tool, tt.arguments, tt.want, tt.not, got)
		}
	}

	// What belongs to nobody but one tool is not spoken of where that is not there.
	for _, row := range tools.Tools() {
		if strings.Contains(row.About, "ask_codebase") {
			t.Errorf("%s speaks of a tool that is not there: %s", row.Name, row.About)
		}
	}
}

// adviceCall is a call in the text of an answer.
var adviceCall = regexp.MustCompile(`\b([a-z]+(?:_[a-z]+)*) (\{"[^\n]*?\})(?:[ .;,\n]|$)`)

// merged returns the arguments of a call with those of an advice "the same and {…}".
func merged(t *testing.T, made, more string) string {
	t.Helper()
	all := map[string]any{}
	for _, text := range []string{made, more} {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	both, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(both)
}

// TestToolAdvice_namesOnlyValidCalls makes every call that the transcripts advise: none has a
// parameter that its tool has not, or a value that it does not take.
func TestToolAdvice_namesOnlyValidCalls(t *testing.T) {
	t.Parallel()
	_, tools := sample(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	advised, made := 0, [2]string{} // the call above an answer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if call, ok := strings.CutPrefix(line, "> "); ok {
				made[0], made[1], _ = strings.Cut(strings.TrimSpace(call), " ")
				continue
			}
			for _, m := range adviceCall.FindAllStringSubmatch(line, -1) {
				if m[1] == "and" {
					m[1], m[2] = made[0], merged(t, made[1], m[2])
				}
				if tools.Unknown(m[1]) != "" || strings.Contains(m[2], "…") {
					continue // no tool, or a value that the agent has to fill in
				}
				advised++
				if got := tools.Call(t.Context(), catalog.Operator(), m[1], json.RawMessage(m[2])); strings.HasPrefix(got.Text, "Wrong arguments") {
					t.Errorf("%s advises %s %s, which is answered: %s", file, m[1], m[2], got.Text)
				}
			}
		}
	}
	if advised < 30 {
		t.Errorf("only %d calls are advised", advised)
	}
}

// TestToolAnswers_nameABrokenRepositoryOnlyWhereItMatters searches beside a repository that
// cannot be indexed, and for names that are defined twice.
func TestToolAnswers_nameABrokenRepositoryOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "good"), map[string]string{
		"drivers/a.c": "static int probe(void)\n{\n    return 1;\n}\n",
		"drivers/b.c": "static int probe(void)\n{\n    return 2;\n}\n\nint start(void)\n{\n    return probe() + probe();\n}\n",
	})
	nodetest.NewRepo(t, filepath.Join(dir, "broken"), map[string]string{"a.txt": "gone\n"})
	breakObjects(t, filepath.Join(dir, "broken", ".git", "objects"))
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags = "" }, // the one on PATH
	})
	n.Wait("symbols", func() error { return hasSymbols(n, "probe") })
	n.Wait("the failure", func() error {
		r, err := n.Browse.Repos(t.Context(), catalog.Operator(), browse.ReposRequest{Query: "broken"})
		if err != nil || len(r.Repos) != 1 || r.Repos[0].Error == "" {
			return fmt.Errorf("%v: %+v", err, r)
		}
		return nil
	})
	tools := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)})
	call := func(name, arguments string) string {
		return tools.Call(t.Context(), catalog.Operator(), name, json.RawMessage(arguments)).Text
	}

	// list_repos tells what is wrong; answers tell the number alone.
	if got := call("list_repos", `{}`); !strings.Contains(got, "local/broken (main, failed to index: ") && !strings.Contains(got, "local/broken (failed to index: ") {
		t.Errorf("%s", got)
	}
	got := call("grep", `{"pattern":"probe"}`)
	if !strings.HasSuffix(got, "\nComplete but for 1 repository that could not be indexed; list_repos tells why.") || strings.Contains(got, "local/broken") {
		t.Errorf("%s", got)
	}
	if got := call("grep", `{"pattern":"probe","repo":"local/good"}`); !strings.HasSuffix(got, "\nComplete.") {
		t.Errorf("%s", got)
	}

	// Where nothing was searched, nothing is complete.
	for name, row := range map[string]struct{ arguments, says string }{
		"grep":                    {`{"pattern":"gone","repo":"local/broken"}`, "The last attempt failed"},
		"search":                  {`{"query":"gone","repo":"local/broken"}`, "The last attempt failed"},
		"glob":                    {`{"pattern":"*.txt","repo":"local/broken"}`, "The last attempt failed"},
		"find_symbol_references":  {`{"symbol":"gone","repo":"local/broken"}`, "Nothing was searched: 1 repository could not be indexed"},
		"find_symbol_definitions": {`{"symbol":"gone","repo":"local/broken"}`, "Nothing was searched: 1 repository could not be indexed"},
	} {
		if got := call(name, row.arguments); strings.Contains(got, "Complete") || !strings.Contains(got, row.says) {
			t.Errorf("%s: %s", name, got)
		}
	}

	// Of two definitions that are alike the one that is used comes first.
	if got := call("find_symbol_definitions", `{"symbol":"probe","repo":"local/good"}`); !strings.HasPrefix(got, "2 definitions of probe in 2 files\ndrivers/b.c\n") {
		t.Errorf("%s", got)
	}
}

// breakObjects empties the contents of files in a store of objects.
func breakObjects(t *testing.T, dir string) {
	t.Helper()
	broken := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		broken++
		return os.Remove(path)
	})
	if err != nil || broken == 0 {
		t.Fatalf("%d objects: %v", broken, err)
	}
}

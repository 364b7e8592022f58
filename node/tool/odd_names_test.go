package tool_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/tool"
)

// oddNames are names of files that do not show, are no UTF-8 or have signs of globs.
var oddNames = []string{
	"d/new\nline.txt", "d/tab\there.txt", "d/esc\x1b[1m.txt", "bad\xff\xfename.txt", "dir\xe9/in.txt", "app/[id]/page.txt", "{a,b}.txt", `back\slash.txt`, `co\u0064e.txt`,
	"wide\u202etxt.txt", "a,b.txt", "größe.txt", "tag\U000e0041.txt", "half\xe6\xa4.txt", `quote".txt`, "100%.txt",
}

// oddRepo starts a node with a repository of odd names, links, a submodule and a pointer.
func oddRepo(t *testing.T) (*nodetest.Node, *tool.Set) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"text.txt": "form\ffeed\nlone\rreturn\nesc\x1b[1m\ncrlf\r\nturned \u202e round\n",
		"lfs.bin":  "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
	}
	for i, name := range oddNames {
		files[name] = fmt.Sprintf("needle%d\n", i)
	}
	r := empty(t, filepath.Join(dir, "odd"))
	r.CommitAs("Ada Bell", day(1), "Begin", files)
	for name, target := range map[string]string{"link.txt": "text.txt", "d/up.txt": "../text.txt", "out.txt": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, "odd", name)); err != nil {
			t.Fatal(err)
		}
		r.Git("add", name)
	}
	r.Git("update-index", "--add", "--cacheinfo", "160000,1234567890123456789012345678901234567890,mod")
	r.Git("-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-qm", "Link")

	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}}`, dir)})
	n.WaitIndexed(1)
	return n, tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)})
}

// TestFileNames_eachToolAcceptsWhatAnotherPrints gives each odd name to each tool, as a text
// and as an argument of JSON.
func TestFileNames_eachToolAcceptsWhatAnotherPrints(t *testing.T) {
	t.Parallel()
	n, tools := oddRepo(t)
	call := func(name string, arguments map[string]any) string {
		arguments["repo"] = "odd"
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		return tools.Call(t.Context(), catalog.Operator(), name, raw).Text
	}

	listed := call("list_tree", map[string]any{"depth": 3, "includeDirectories": false})
	for i, name := range oddNames {
		written := paths.Written(name)
		if !strings.Contains(listed, "\n"+written+"\n") {
			t.Errorf("%q is not listed as %s in\n%s", name, written, listed)
		}

		var argument string
		if err := json.Unmarshal([]byte(paths.Quoted(name)), &argument); err != nil {
			t.Fatal(err)
		}
		content := fmt.Sprintf("needle%d", i)
		for _, given := range []string{written, argument} {
			for what, got := range map[string]string{
				"read_file":    call("read_file", map[string]any{"path": given}),
				"grep path":    call("grep", map[string]any{"pattern": content + "$", "path": given}),
				"grep include": call("grep", map[string]any{"pattern": content + "$", "include": given}),
				"grep":         call("grep", map[string]any{"pattern": content + "$"}),
				"search":       call("search", map[string]any{"query": content, "include": given}),
			} {
				if !strings.Contains(got, content) || !strings.Contains(got, written) {
					t.Errorf("%s of %q: no %q, or not %s:\n%s", what, given, content, written, got)
				}
			}
			for what, got := range map[string]string{
				"glob":         call("glob", map[string]any{"pattern": given}),
				"list_commits": call("list_commits", map[string]any{"path": given}),
				"blame":        call("blame", map[string]any{"path": given}),
			} {
				want := map[string]string{"glob": written + "\n", "list_commits": "Begin", "blame": "Begin"}[what]
				if !strings.Contains(got, want) {
					t.Errorf("%s of %q: no %q in\n%s", what, given, want, got)
				}
			}

			// The routes and pages read files by the same request.
			src, err := n.Browse.Source(t.Context(), catalog.Operator(), browse.SourceRequest{Repo: "local/odd", Path: given})
			if err != nil || string(src.Content) != content+"\n" {
				t.Errorf("source of %q: %v, %v", given, src, err)
			}
		}
	}

	// A name is one line to file: too.
	if r := n.Results(`needle0 file:new.line\.txt$`); len(r.Files) != 1 {
		t.Errorf("a dot does not match a line break of a name: %d files", len(r.Files))
	}
	if r := n.Results(`needle0 -file:d.*\.txt$`); len(r.Files) != 0 {
		t.Errorf("a name with a line break is not left out: %d files", len(r.Files))
	}
	if got := call("grep", map[string]any{"pattern": "needle", "include": "d/*"}); !strings.Contains(got, "3 matching lines") {
		t.Errorf("globs:\n%s", got)
	}

	// Brackets in a glob are a class of letters; where that matches nothing, they are themselves.
	for glob, want := range map[string]string{"app/[id]/*": "app/[id]/page.txt\n", "**/[id]/**": "d/up.txt\n", "app/[id]/[p]*": "No file matches", "[q]uote*": "quote"} {
		if got := call("glob", map[string]any{"pattern": glob}); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s", glob, got)
		}
	}
}

// TestListFiles_marksLinksSubmodulesAndPointers marks links, submodules and pointers, and writes what
// does not show in a line by its code.
func TestListFiles_marksLinksSubmodulesAndPointers(t *testing.T) {
	t.Parallel()
	_, tools := oddRepo(t)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"list_tree", `{"repo":"odd"}`, "\nlink.txt -> text.txt\n"},
		{"list_tree", `{"repo":"odd","path":"d"}`, "\nup.txt -> ../text.txt\n"},
		{"list_tree", `{"repo":"odd","sizes":true}`, "\nmod (submodule at 123456789012)\n"},
		{"read_file", `{"repo":"odd","path":"link.txt"}`, `This is a symbolic link to text.txt; if that is a file: read_file {"repo":"local/odd","path":"text.txt"}`},
		{"read_file", `{"repo":"odd","path":"d/up.txt"}`, `This is a symbolic link to ../text.txt; if that is a file: read_file {"repo":"local/odd","path":"text.txt"}`},
		{"read_file", `{"repo":"odd","path":"out.txt"}`, "This is a symbolic link to /etc/passwd, outside of the repository."},
		{"read_file", `{"repo":"odd","path":"lfs.bin"}`, "This is a pointer of Git LFS: the file itself is not in the repository.\n1: version"},
		{"read_file", `{"repo":"odd","path":"text.txt"}`, "1: form\\u000cfeed\nlone\\u000dreturn\nesc\\u001b[1m\ncrlf\n5: turned \\u202e round\n"},
		{"grep", `{"repo":"odd","pattern":"feed|crlf"}`, "1: form\\u000cfeed\n4: crlf\n"},
	} {
		got := tools.Call(t.Context(), catalog.Operator(), tt.tool, json.RawMessage(tt.arguments)).Text
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: no %q in\n%s", tt.tool, tt.arguments, tt.want, got)
		}
	}
}

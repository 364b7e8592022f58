package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/symbols"
)

// rounds is how often the script calls every tool.
const rounds = 20

// TestMCPClientScript_runsAgainstEveryTool runs the script of .ci/mcp/client.mjs with the Go client: against the server
// in SHOAL_MCP_URL, else against its own node.
func TestMCPClientScript_runsAgainstEveryTool(t *testing.T) {
	t.Parallel()
	url, repo := os.Getenv("SHOAL_MCP_URL"), os.Getenv("SHOAL_CHECK_REPO")
	if url == "" {
		url, repo = ownServer(t)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "shoal-checks", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(os.Getenv("SHOAL_API_KEY"))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	checkTools(t, session)
	call := func(want, tool string, args map[string]any) {
		t.Helper()
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if r.IsError || !strings.Contains(text, want) {
			t.Fatalf("%s %v: want %q in\n%s", tool, args, want, text)
		}
	}
	for round := range rounds {
		if pid, err := strconv.Atoi(os.Getenv("SHOAL_CHECK_KILL")); err == nil && round == rounds/2 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		call(repo, "list_repos", map[string]any{"query": "checks"})
		call("README", "list_tree", map[string]any{"repo": repo, "depth": 2})
		call("Checks", "read_file", map[string]any{"repo": repo, "path": "README.md", "limit": 5})
		call("answer.go", "grep", map[string]any{"pattern": "func Answer", "repo": repo})
		call("answer.go", "grep", map[string]any{"pattern": "func Answer"})
		call("answer.go", "grep", map[string]any{"pattern": "func Answer", "repo": repo, "ref": "HEAD~1"})
		call("answer.go", "glob", map[string]any{"pattern": "**/*.go", "repo": repo})
		call("newest first", "list_commits", map[string]any{"repo": repo})
		call("main", "list_branches", map[string]any{"repo": repo})
		call("answer.go", "get_diff", map[string]any{"repo": repo, "base": "HEAD~1", "head": "HEAD"})
		call("answer.go", "find_symbol_definitions", map[string]any{"symbol": "Answer", "repo": repo})
		call("use.go", "find_symbol_references", map[string]any{"symbol": "Answer", "repo": repo})
		call("Nothing extends", "find_implementations", map[string]any{"symbol": "Answer", "repo": repo})
		call("No manifest", "dependencies", map[string]any{"repo": repo})
		call("answer.go", "search", map[string]any{"query": "answers", "repo": repo})
		call("Answer", "outline", map[string]any{"repo": repo, "path": "answer.go"})
		call("answer.go", "blame", map[string]any{"repo": repo, "path": "answer.go"})
		call("", "list_language_models", nil)
	}
}

func checkTools(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	wanted := []string{
		"blame", "dependencies", "find_implementations", "find_symbol_definitions", "find_symbol_references", "get_diff", "glob", "grep", "list_branches",
		"list_commits", "list_language_models", "list_repos", "list_tree", "outline", "read_file", "search",
	}
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Description == "" || !tool.Annotations.ReadOnlyHint || tool.InputSchema == nil {
			t.Errorf("%s lacks a description, a hint or a schema", tool.Name)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, wanted) {
		t.Errorf("tools %q, want %q", names, wanted)
	}
}

// bearer sends an API key, unless empty, with every request.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// ownServer starts a node with its API and one repository of two commits.
func ownServer(t *testing.T) (url, repo string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checks")
	r := nodetest.NewRepo(t, dir, map[string]string{
		"README.md": "# Checks\n\nA repository to ask about.\n",
		"answer.go": "package checks\n\n// Answer answers.\nfunc Answer() int { return 41 }\n",
	})
	r.Commit(map[string]string{
		"answer.go": "package checks\n\n// Answer answers.\nfunc Answer() int { return 42 }\n",
		"use.go":    "package checks\n\nvar used = Answer()\n",
	})
	n := nodetest.Start(t, nodetest.Config{
		File: `{"connections": {"checks": {"type": "git", "url": "file://` + dir + `"}}}`,
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		Edit: func(o *node.Options) { o.Ctags = "" }, // from PATH
	})
	n.WaitIndexed(1)
	n.Wait("symbols", func() error { return symbolsThere(n) })
	s, err := api.New(n.Node, api.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop the API: %v", err)
		}
	})
	return "http://" + s.Addr().String() + "/api/mcp", "local/checks"
}

// symbolsThere returns an error until the symbols are there, which come after the text.
func symbolsThere(n *nodetest.Node) error {
	r, err := n.Search.Definitions(context.Background(), catalog.Operator(), symbols.SymbolRequest{Symbol: "Answer", Repo: "local/checks"})
	if err != nil {
		return err
	}
	if len(r.Files) == 0 {
		return errors.New("no definition yet")
	}
	return nil
}

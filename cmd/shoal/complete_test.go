package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The shell completes names from a node, and never files of the current directory.
func TestShellCompletion_completesNamesFromANode(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	for path, answer := range map[string]string{
		"/api/status":      `{"members":[{"id":"n1abc"},{"id":"n2abc"}]}`,
		"/api/keys":        `[{"name":"ci","id":"11111111"},{"name":"laptop","id":"22222222"}]`,
		"/api/connections": `[{"name":"work"},{"name":"other"}]`,
		"/api/users":       `[{"email":"ann@example.com"},{"email":"bob@example.com"}]`,
		"/api/agents":      `[{"id":"a1"}]`,
		"/api/jobs":        `[{"id":"index:7"},{"id":"sync:work"}]`,
		"/api/repos":       `[{"repoName":"github.com/acme/app"},{"repoName":"github.com/acme/api"}]`,
	} {
		node.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
	}

	for _, c := range []struct{ command, typed, want string }{
		{"drain", "", "n1abc n2abc"},
		{"undrain", "n2", "n2abc"},
		{"lead", "n2", "n2abc"},
		{"remove", "n1", "n1abc"},
		{"key revoke", "la", "laptop"},
		{"connection sync", "", "work other"},
		{"connection accept", "w", "work"},
		{"connection webhook", "o", "other"},
		{"user role", "a", "ann@example.com"},
		{"user suspend", "b", "bob@example.com"},
		{"user delete", "b", "bob@example.com"},
		{"user access", "ann", "ann@example.com"},
		{"grant", "a", "ann@example.com"},
		{"agent revoke", "", "a1"},
		{"jobs retry", "index:", "index:7"},
		{"jobs cancel", "s", "sync:work"},
		{"repo reindex", "git", "github.com/acme/app github.com/acme/api"},
		{"drain n1abc", "", ""},
	} {
		if got := completed(t, node, c.command, c.typed); got != c.want {
			t.Errorf("shoal %s %s: %q, want %q", c.command, c.typed, got, c.want)
		}
	}

	if got := completed(t, http.NewServeMux(), "drain", ""); got != "" {
		t.Errorf("of a node that refuses: %q", got)
	}
}

// completed returns the shell's completions of the next word.
func completed(t *testing.T, node http.Handler, command, typed string) string {
	t.Helper()
	server := httptest.NewServer(node)
	defer server.Close()
	cmd := newRoot(func(string) string { return "" })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append(append([]string{"__complete"}, strings.Fields(command)...), "--url", server.URL, "--key", "shoal_x", typed))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Errorf("shoal %s: %v", command, err)
	}

	// The last line is a directive to the shell: 4 means no files.
	offered, found := strings.CutSuffix(out.String(), ":4\n")
	if !found {
		t.Errorf("shoal %s: %q offers files", command, out.String())
	}
	return strings.Join(strings.Fields(offered), " ")
}

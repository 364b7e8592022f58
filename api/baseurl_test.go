package api

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Links, accepted host names, cookies and the MCP server's address follow AUTH_URL of the
// configuration, without a restart.
func TestBaseURL_changesWithAUTH_URLWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package needle\n"})
	file := func(base string) string {
		return fmt.Sprintf(`{"connections": {"l": {"type": "git", "url": "file://%s/*"}}, "environmentOverrides": {
			"FORCE_ENABLE_ANONYMOUS_ACCESS": {"type": "boolean", "value": true}, "AUTH_URL": {"type": "string", "value": %q}}}`, dir, base)
	}
	n := nodetest.Start(t, nodetest.Config{File: file("https://one.example/"), Edit: func(o *node.Options) { o.BaseURL, o.OwnURL = "", "http://own.example" }})
	n.WaitIndexed(1)
	s := start(t, partsOf(n.Node))
	key, err := n.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "owner", Role: catalog.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}

	answer := func(method, path, host, body string) (status int, text string) {
		resp, text := visit(t, s, method, path, body, map[string]string{"Host": host, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
		return resp.StatusCode, text
	}
	for _, c := range []struct{ set, base, host, other, cookie string }{
		{"https://one.example/", "https://one.example", "one.example", "two.example", "__Host-shoal"},
		{"http://localhost:8080", "http://localhost:8080", "localhost:8080", "one.example", "shoal"},
		{"", "http://own.example", "own.example", "one.example", "shoal"},
	} {
		n.Configure(file(c.set))
		n.Wait("the base URL "+c.base, func() error {
			if got := n.BaseURL(); got != c.base {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		})

		for _, x := range []struct{ method, path, body, want string }{
			{"POST", "/api/search", `{"query": "needle"}`, `"webUrl":"` + c.base + `/browse/`},
			{"POST", "/api/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}`, c.base},
			{"GET", "/robots.txt", "", "Disallow: /\n"},
			{"GET", "/opensearch.xml", "", c.base + "/search?"},
			{"GET", "/.well-known/oauth-protected-resource", "", c.base + "/api/mcp"},
		} {
			if x.path == "/.well-known/oauth-protected-resource" && c.host == "own.example" {
				continue // agents cannot sign in over plain HTTP
			}
			if status, text := answer(x.method, x.path, c.host, x.body); status != http.StatusOK || !strings.Contains(text, x.want) {
				t.Errorf("%q: %s %s: %d, %s; want %s", c.set, x.method, x.path, status, text, x.want)
			}
		}
		if status, _ := answer("GET", "/api/repos", c.other, ""); status != http.StatusMisdirectedRequest {
			t.Errorf("%q: asked by the name %s it answers %d", c.set, c.other, status)
		}
		resp, _ := visit(t, s, "POST", "/login", url.Values{"key": {key.Key}}.Encode(), map[string]string{"Host": c.host})
		if got := cookieOf(t, resp).Name; got != c.cookie {
			t.Errorf("%q: the cookie is %s, want %s", c.set, got, c.cookie)
		}
	}
}

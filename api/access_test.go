package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/node/chronicle"
)

// noAccesses are routes that are no access to code: they show no code, or they change something
// and so have an event. A route in neither this list nor accesses fails
// TestRoutes_areEitherAuditedOrListedAsUnaudited.
var noAccesses = []string{
	// About the node.
	"GET /api/version", "GET /api/health", "GET /api/openapi.json", "GET /livez", "GET /readyz", "GET /metrics", "GET /api/status", "GET /api/models",
	"GET /api/contexts", "GET /api/jobs", "GET /api/jobs/{id}", "GET /api/events", "GET /api/connections", "GET /api/connections/{connection}", "GET /api/config", "GET /api/webhook/{connection}",
	"GET /api/me", "GET /api/keys", "GET /api/users", "GET /api/ee/users", "GET /api/ee/user", "GET /api/raft", "GET /api/placement", "GET /api/agents", "GET /api/chat", "GET /api/watches", "GET /api/history",

	// Completions, and the meaning of a query.
	"GET /api/suggest", "GET /suggest", "GET /api/query",

	// Discovery by agents and browsers.
	"GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/api/mcp",
	"GET /.well-known/oauth-authorization-server", "GET /.well-known/oauth-authorization-server/api/mcp",
	"GET /authorize", "GET /oauth/authorize", "GET /login", "GET /join", "GET /", "GET /static/*", "GET /opensearch.xml", "GET /open", "GET /robots.txt", "GET /help/{topic}", "GET /docs", "GET /docs/*", "GET /~/*",
	"GET /chat", "GET /chats", "GET /watches", "GET /cluster", "GET /status", "GET /api/snapshot", "GET /debug/pprof/{profile}",
}

func TestRoutes_areEitherAuditedOrListedAsUnaudited(t *testing.T) {
	t.Parallel()
	known := func(name string) bool {
		return accesses[name] != "" || entrances[name] != "" || slices.Contains(noAccesses, name) || strings.HasPrefix(name, "GET /settings") ||
			!strings.HasPrefix(name, "GET ") && changesSomething(name)
	}
	seen := map[string]bool{}
	for name := range askedRoutes {
		if !known(name) {
			t.Errorf("%s is neither an access for the audit nor in noAccesses", name)
		}
		seen[name] = true
	}
	for name := range accesses {
		if !seen[name] {
			t.Errorf("accesses has %s, which is no route", name)
		}
	}
	for name := range entrances {
		if !seen[name] {
			t.Errorf("entrances has %s, which is no route", name)
		}
	}
}

// changesSomething reports whether a route changes something and so has an event, or is a webhook
// of a host.
func changesSomething(name string) bool {
	for _, begin := range []string{
		"POST /api/repos/", "PATCH /api/chat", "DELETE /api/", "POST /api/chat/{id}/stop", "POST /api/chat/{id}/fork", "POST /api/models", "POST /api/config",
		"POST /api/keys", "POST /api/users", "POST /api/agents", "POST /api/connections", "POST /api/nodes", "POST /api/webhook", "POST /api/jobs", "POST /api/history",
		"POST /settings", "POST /api/watches", "PATCH /api/watches/", "POST /watches", "POST /logout", "POST /oauth", "POST /register",
	} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// Reads and refusals are recorded with place and object, but without secrets.
func TestAccessLog_recordsReadsAndRefusalsWithoutSecrets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var noted []chronicle.Access
	s := start(t, &fake{noted: func(a chronicle.Access) {
		mu.Lock()
		defer mu.Unlock()
		noted = append(noted, a)
	}})
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
	bad := "shoal_" + strings.Repeat("9", 64)
	for _, c := range []struct {
		key, method, target, body string
		header                    map[string]string
		want                      string // "" if nothing is recorded
	}{
		{memberKey, "POST", "/api/search", `{"query":"whale"}`, nil, "code.searched api_key k1 200 of  , looked for whale"},
		{memberKey, "GET", "/search?query=whale", "", nil, "code.searched api_key k1 200 of  , looked for whale"},
		{memberKey, "GET", "/api/source?repo=a/b&path=x", "", nil, "code.read api_key k1 200 of repository a/b, looked for "},
		{memberKey, "GET", "/api/raw?repo=a/b&path=x", "", nil, "code.read api_key k1 200 of repository a/b, looked for "},
		{memberKey, "POST", "/api/find_references", `{"symbolName":"Swim","repoName":"a/b"}`, nil, "code.references api_key k1 200 of repository a/b, looked for Swim"},
		{memberKey, "POST", toolPath, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"grep","arguments":{"pattern":"sh.rk","repo":"a/b"}}}`,
			map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}, "tool.grep api_key k1 200 of repository a/b, looked for sh.rk"},
		{memberKey, "POST", toolPath, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
			map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}, ""},
		{ownerKey, "GET", "/api/watches/w1", "", nil, "watch.read api_key k2 200 of watch w1, looked for "},
		{memberKey, "GET", "/watches/w1", "", nil, "watch.read api_key k1 200 of watch w1, looked for "},
		{"", "GET", "/feed/shoalfeed_hunter2", "", nil, "watch.read anonymous  200 of watch w1, looked for "},
		{ownerKey, "GET", "/api/audit", "", nil, "audit.read api_key k2 200 of  , looked for "},
		{memberKey, "GET", "/api/audit", "", nil, "access.denied api_key k1 403 of route GET /api/audit, looked for "},
		{ownerKey, "GET", "/api/users/u1/access?repo=a/b", "", nil, "rights.read api_key k2 200 of repository a/b, looked for , of u1"},
		{ownerKey, "GET", "/settings/rights?user=u1&repo=a/b", "", nil, "rights.read api_key k2 200 of repository a/b, looked for , of u1"},
		{ownerKey, "GET", "/settings/rights", "", nil, ""},
		{memberKey, "GET", "/settings/rights?user=u1&repo=a/b", "", nil, "access.denied api_key k1 403 of route GET /settings/rights, looked for "},
		{memberKey, "GET", "/api/version", "", nil, ""},
		{"", "POST", "/api/search", `{"query":"whale"}`, nil, ""},
		{bad, "POST", "/api/search", `{"query":"whale"}`, nil, "credential.refused anonymous  401 of api_key shoal_99999999, looked for "},
		{"hunter2", "POST", "/api/search", `{"query":"whale"}`, nil, "credential.refused anonymous  401 of api_key , looked for "},
		{"", "POST", "/login", url.Values{"email": {"ann@example.com"}, "password": {"hunter2"}}.Encode(), form, "login.failed anonymous  401 of user ann@example.com, looked for "},
		{"", "POST", "/login", url.Values{"email": {"hunter2"}, "password": {"hunter2"}}.Encode(), form, "login.failed anonymous  401 of  , looked for "},
		{"", "POST", "/login", url.Values{"key": {bad}}.Encode(), form, "login.failed anonymous  401 of api_key shoal_99999999, looked for "},
		{"", "POST", "/login", url.Values{"key": {memberKey}}.Encode(), form, ""},
		{"", "POST", "/api/session", `{"email":"ann@example.com","password":"hunter2"}`, form, "login.failed anonymous  401 of user ann@example.com, looked for "},
		{"", "POST", "/api/session", `{"email":"hunter2","password":"hunter2"}`, form, "login.failed anonymous  401 of  , looked for "},
		{"", "POST", "/api/session", `{"key":"` + bad + `"}`, form, "login.failed anonymous  401 of api_key shoal_99999999, looked for "},
		{"", "POST", "/api/session", `["hunter2"]`, form, "login.failed anonymous  400 of  , looked for "},
		{"", "POST", "/api/session", `{"key":"` + memberKey + `"}`, form, ""},
	} {
		mu.Lock()
		noted = nil
		mu.Unlock()
		header := map[string]string{}
		for name, value := range c.header {
			header[name] = value
		}
		if c.key != "" {
			header["Authorization"] = "Bearer " + c.key
		}
		visit(t, s, c.method, c.target, c.body, header)

		mu.Lock()
		got := ""
		for _, a := range noted {
			got += fmt.Sprintf("%s %s %s %d of %s %s, looked for %s", a.Action, a.Actor.Type, a.Actor.ID, a.Status, a.TargetType, a.Target, a.Query)
			if a.Message != "" {
				got += ", " + a.Message
			}
			if text := fmt.Sprintf("%+v", a); strings.Contains(text, "hunter2") || strings.Contains(text, bad) {
				t.Errorf("a secret is noted: %s", text)
			}
			if refused := a.Status >= 400; refused != a.Refusal {
				t.Errorf("%s: refusal %t of status %d", a.Action, a.Refusal, a.Status)
			}
		}
		mu.Unlock()
		if got != c.want {
			t.Errorf("%s %s %s: noted %q, want %q", c.method, c.target, c.body, got, c.want)
		}
	}
}

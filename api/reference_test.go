package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Clients of Sourcebot read accounts and the audit under its paths.
func TestSourcebotRoutes_serveAccountsAndAudit(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for path, want := range map[string]string{
		"/api/ee/users":          `[{"id":"u1","name":"Ann","email":"ann@example.com","role":"MEMBER","suspendedAt":null,"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z","lastActivityAt":"2026-01-02T03:04:05Z"}]`,
		"/api/ee/user?userId=u1": `{"id":"u1","name":"Ann",`,
		"/api/ee/audit":          `"metadata":{},"sourcebotVersion":"`,
	} {
		resp, body := ask(t, s, "GET", path, "")
		if text := strings.TrimSpace(string(body)); resp.StatusCode != 200 || !strings.Contains(strings.ReplaceAll(text, formatTime(day), "2026-01-02T03:04:05Z"), want) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// A Sourcebot path that is not served names its replacement.
func TestSourcebotRoutes_answerNamesTheReplacementOfAMissingRoute(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for path, want := range map[string]string{
		"/api/ee/scoped_access_token": "POST /api/keys", "/api/ee/scoped_access_token/7": "POST /api/keys", "/api/ee/chats": "/api/chat", "/api/ee/oauth/token": "/oauth/token",
		"/api/ee/none": "openapi.json", "/api/folder_contents": "POST /api/tree", "/scim/v2/Users": "POST /api/users", "/api/nothing": "does not exist",
	} {
		resp, body := ask(t, s, "POST", path, "{}")
		var f struct{ Message string }
		if err := json.Unmarshal(body, &f); err != nil || resp.StatusCode != 404 || !strings.Contains(f.Message, want) {
			t.Errorf("%s: %d %s, want %s", path, resp.StatusCode, body, want)
		}
	}

	// The named replacement exists.
	for _, x := range replacements {
		for word := range strings.FieldsSeq(x.sentence) {
			path, _, _ := strings.Cut(strings.Trim(word, ".,;"), "?")
			if strings.HasPrefix(path, "/") {
				if found, _ := s.routes.find(strings.Replace(path, "{id}", "x", 1)); found == nil {
					t.Errorf("%s names %s, which is no route", x.prefix, path)
				}
			}
		}
	}
}

// Everybody may list connections of visible repositories; only owners see their state.
func TestConnectionList_showsStateOnlyToOwners(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for key, want := range map[string][]string{
		memberKey: {"connectionType", "id", "name"},
		ownerKey:  {"issues", "type"},
	} {
		resp, body := askAs(t, s, key, "GET", "/api/connections", "")
		var list []map[string]any
		if err := json.Unmarshal([]byte(body), &list); err != nil || resp.StatusCode != 200 || len(list) != 1 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		for _, field := range want {
			if _, ok := list[0][field]; !ok {
				t.Errorf("%s is missing in %s", field, body)
			}
		}
		if key == memberKey && len(list[0]) != 3 {
			t.Errorf("a member is told %s", body)
		}
	}
	if a, b := catalog.ConnectionID("main"), catalog.ConnectionID("other"); a == b || slices.Contains([]uint32{a, b}, 0) {
		t.Errorf("ids %d and %d", a, b)
	}
}

package api

import (
	"strings"
	"testing"
)

// Owners list the audit by pages and as lines. For all others it does not exist.
func TestAuditRoutes_answerOnlyOwners(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	for _, c := range []struct {
		key, query string
		status     int
		want       string // part of the answer
	}{
		{"", "", 401, "NOT_AUTHENTICATED"},
		{memberKey, "", 403, "INSUFFICIENT_PERMISSIONS"},
		{memberKey, "?format=jsonl", 403, "INSUFFICIENT_PERMISSIONS"},
		{ownerKey, "", 200, `[{"id":"n2-7","timestamp":"2023-11-14T22:16:40Z","action":"login.failed"`},
		{ownerKey, "?kind=changes", 200, `[{"id":"2050","timestamp":"2023-11-14T22:15:00Z","action":"api_key.deleted","actorId":"u1","actorType":"user","actorName":"ann@example.com","targetId":"k9"`},
		{ownerKey, "?perPage=1&page=3", 200, `[{"id":"1025"`},
		{ownerKey, "?format=jsonl", 200, "}\n{\"id\":\"1025\""},
		{ownerKey, "?format=jsonl", 200, `"action":"audit.missing","actorId":"","actorType":"system","targetId":"n3"`},
		{ownerKey, "?kind=some", 400, "kind: expected one of all, changes, accesses"},
		{ownerKey, "?since=yesterday&perPage=101", 400, "since: expected a time"},
	} {
		resp, text := askAs(t, s, c.key, "GET", "/api/audit"+c.query, "")
		body := string(text)
		if resp.StatusCode != c.status || !strings.Contains(body, c.want) || c.key != ownerKey && strings.Contains(body, "u1") {
			t.Errorf("%q by %.12q: %d %s; want %d and %s", c.query, c.key, resp.StatusCode, body, c.status, c.want)
		}
		if missing := resp.Header.Get(missingHeader); c.status == 200 && (missing == "n3: it cannot be reached") == strings.Contains(c.query, "kind=changes") {
			t.Errorf("%q: missing is %q", c.query, missing)
		}
	}
}

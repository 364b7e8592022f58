package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestAuditCommand_listsAndExports(t *testing.T) {
	t.Parallel()
	const line = `{"id":"1","timestamp":"2020-01-02T10:00:00Z","action":"api_key.created","actorId":"u1","actorType":"user","actorName":"ann@example.com","targetId":"k1","targetType":"api_key","address":"192.0.2.7","node":"n1","metadata":{"message":"ci"}}`
	asked := ""
	node := http.NewServeMux()
	node.HandleFunc("GET /api/audit", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		if r.URL.Query().Get("format") == "jsonl" {
			_, _ = w.Write([]byte(line + "\n"))
			return
		}
		_, _ = w.Write([]byte("[" + line + "]"))
	})

	stdout, _, err := run(t, node, "audit", "--actor", "ann@example.com", "--action", "api_key", "--since", "2020-01-01")
	if err != nil || asked != "action=api_key&actor=ann%40example.com&perPage=50&since=2020-01-01" {
		t.Errorf("%v, asked %q", err, asked)
	}
	for _, want := range []string{"ann@example.com  192.0.2.7  api_key.created  api_key k1  ci"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}

	if stdout, _, err = run(t, node, "audit", "--json"); err != nil || stdout != line+"\n" {
		t.Errorf("exported %q, %v", stdout, err)
	}
}

package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	asked := ""
	node := http.NewServeMux()
	node.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		_, _ = w.Write([]byte(`{"since":"2020-01-01T10:00:00Z","events":[{"at":"2020-01-02T10:00:00Z","kind":"joined","subject":"n4","text":"node n4 joined"}]}`))
	})
	stdout, _, err := run(t, node, "events", "--limit", "7")
	if err != nil || asked != "limit=7" || !strings.Contains(stdout, "joined  node n4 joined\n") || !strings.Contains(stdout, "since 2020-01-01") {
		t.Errorf("%v, asked %q:\n%s", err, asked, stdout)
	}
}

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEventsCommand_listsEvents(t *testing.T) {
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

// --follow prints each event once, in order of time, also if a node fails for a moment.
func TestEventsCommand_followPrintsEachEventOnce(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	event := func(text string) string {
		return `{"at":"2020-01-02T10:00:00Z","kind":"joined","subject":"x","text":"` + text + `"}`
	}
	answers := []string{
		`{"events":[` + event("two") + `,` + event("one") + `],"next":"a"}`,
		"",
		"",
		`{"events":[],"next":"b"}`,
		`{"events":[` + event("three") + `],"next":"c","missed":true}`,
	}

	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch n := len(asked); {
		case n > len(answers):
			stop()
		case answers[n-1] == "":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte(answers[n-1]))
		}
	}))
	defer server.Close()

	var out, diag bytes.Buffer
	f := follower{client: &client{base: server.URL, http: server.Client()}, out: &out, diag: &diag, pause: time.Millisecond}
	if err := f.run(ctx, 7); err != nil {
		t.Fatal(err)
	}
	server.Close()

	var texts []string
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		texts = append(texts, fields[len(fields)-1])
	}
	if !slices.Equal(texts, []string{"one", "two", "three"}) {
		t.Errorf("printed %q", texts)
	}
	if want := []string{"limit=7", "limit=1000&after=a", "limit=1000&after=a", "limit=1000&after=a", "limit=1000&after=b", "limit=1000&after=c"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if got := diag.String(); strings.Count(got, "asking again") != 1 || strings.Count(got, "more has happened") != 1 {
		t.Errorf("told of the failures:\n%s", got)
	}
}

// A node of an older version returns no cursor, so --follow would print the same events forever.
func TestEventsCommand_followNeedsANewerNode(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("GET /api/events", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"events":[]}`)) })
	if _, _, err := run(t, node, "events", "-f"); err == nil || !strings.Contains(err.Error(), "older version") {
		t.Errorf("%v", err)
	}
	if _, _, err := run(t, node, "events", "-f", "--json"); err == nil {
		t.Error("--json has no form that goes on")
	}
}

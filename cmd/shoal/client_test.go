package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// run gives a command to the program, with a server in place of a node.
func run(t *testing.T, node http.Handler, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(node)
	defer server.Close()
	cmd := newRoot(func(string) string { return "" })
	var out, diag bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&diag)
	cmd.SetArgs(append(args, "--url", server.URL, "--key", "shoal_x"))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), diag.String(), err
}

// Counts are of all that there is: the limit of what is shown has no say.
func TestCountsHaveNoLimit(t *testing.T) {
	t.Parallel()
	var asked struct {
		Query   string
		Matches int
	}
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(`{"stats":{"totalMatchCount":70000,"fileCount":600,"shardsRequired":2,"shardsAnswered":2},"files":[{"fileName":{"text":"a"}}]}`))
	})
	stdout, stderr, err := run(t, node, "search", "-c", "foo")
	if err != nil || stdout != "70000 matches in 600 files\n" || stderr != "" {
		t.Errorf("got %q, %q, %v", stdout, stderr, err)
	}
	if asked.Query != "foo count:all" || asked.Matches != 1 {
		t.Errorf("asked %+v", asked)
	}
}

// Who has waited can search: a node that was started again knows what is
// indexed before it takes searches.
func TestWaitingEndsWhenTheNodeServes(t *testing.T) {
	t.Parallel()
	asked := 0
	node := http.NewServeMux()
	node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"node":"n","leader":"n","repos":{"total":1,"indexed":1},"connections":[{"state":"synced"}],"members":[{"id":"n"}]}`))
	})
	node.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	_, stderr, err := run(t, node, "status", "--wait-indexed")
	if err != nil || asked != 3 || !strings.Contains(stderr, "1 of 1 repositories indexed") {
		t.Errorf("asked %d times: %q, %v", asked, stderr, err)
	}
}

func TestWithoutAKeyItIsSaidHowToGetOne(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"Not authenticated", "Not authenticated."} {
		e := &apiError{Code: "NOT_AUTHENTICATED", Message: message}
		if got := e.Error(); !strings.HasPrefix(got, "Not authenticated. Make an API key with") {
			t.Errorf("got %q", got)
		}
	}
}

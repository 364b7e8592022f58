package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// `config check` prints what each connection will list. With --online it asks the hosts, and
// fails if one does not list.
func TestConfigCheck_onlineAsksTheHosts(t *testing.T) {
	t.Parallel()
	gitea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "token right":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message": "invalid username, password or token"}`)
		case r.URL.Path == "/api/v1/orgs/acme/repos" && r.URL.Query().Get("page") == "1":
			fmt.Fprint(w, `[`)
			for i := range 30 {
				fmt.Fprintf(w, `{"id": %d, "full_name": "acme/r%d", "private": %t},`, i+1, i, i == 0)
			}
			fmt.Fprint(w, `{"id": 99, "full_name": "acme/last"}]`)
		case r.URL.Path == "/api/v1/orgs/acme/repos":
			fmt.Fprint(w, `[]`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message": "not found"}`)
		}
	}))
	defer gitea.Close()
	local := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(local, "app"), map[string]string{"a.go": "package a"})

	record := t.TempDir()
	check := func(token string, args ...string) (string, error) {
		file := filepath.Join(t.TempDir(), "shoal.json")
		text := fmt.Sprintf(`{
			"connections": {
				"work": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"], "exclude": {"archived": true}},
				"here": {"type": "git", "url": "file://%s/*"},
			},
			"environmentOverrides": {},
		}`, gitea.URL, local)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := newRoot(func(name string) string {
			return map[string]string{"GITEA_TOKEN": token, "SHOAL_HOST_RECORD": record}[name]
		})
		var printed bytes.Buffer
		cmd.SetOut(&printed)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{"config", "check", file}, args...))
		err := cmd.ExecuteContext(t.Context())
		return printed.String(), err
	}

	out, err := check("right")
	for _, want := range []string{"work (gitea) lists organisations acme\n    leaves out archived\n", "here (git) lists file://"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v\n%swant %s", err, out, want)
		}
	}

	out, err = check("right", "--online")
	for _, want := range []string{"work: the first 20 repositories; more follow\n", "/acme/r0 (private)\n", "here: 1, which is all that it lists\n  local/app\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v\n%swant %s", err, out, want)
		}
	}
	if strings.Contains(out, "acme/r20\n") {
		t.Errorf("more is printed than the first repositories:\n%s", out)
	}

	out, err = check("wrong", "--online")
	if err == nil || !strings.Contains(out, "work: the host does not list: ") || !strings.Contains(out, "here: 1, ") || strings.Contains(out, "wrong") {
		t.Errorf("with a token that is refused: %v\n%s", err, out)
	}

	// The host's answers are recorded on request.
	if files, err := filepath.Glob(filepath.Join(record, "*.json")); err != nil || len(files) == 0 {
		t.Errorf("recorded are %v, %v", files, err)
	}
}

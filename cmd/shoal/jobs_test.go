package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestJobsCommand_listsRetriesAndCancels(t *testing.T) {
	t.Parallel()
	const one = `{"id":"index:7","state":"retrying","kind":"index","subject":"example.com/a/b","attempt":3,"error":"clone failed","nextTry":"2020-01-02T10:00:00Z"}`
	asked := ""
	node := http.NewServeMux()
	node.HandleFunc("GET /api/jobs", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		_, _ = w.Write([]byte("[" + one + "]"))
	})
	for _, verb := range []string{"retry", "cancel"} {
		node.HandleFunc("POST /api/jobs/index:7/"+verb, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(one))
		})
	}
	for _, c := range []struct{ args, want string }{
		{"jobs list --state retrying --kind index", "index:7  retrying  example.com/a/b  3        next 2020-01-02"},
		{"jobs retry index:7", "index:7 (example.com/a/b) is queued"},
		{"jobs cancel index:7", "index:7 (example.com/a/b) is cancelled"},
	} {
		stdout, stderr, err := run(t, node, strings.Fields(c.args)...)
		if err != nil || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: %v %s\n%s, want %q", c.args, err, stderr, stdout, c.want)
		}
	}
	if asked != "kind=index&perPage=100&state=retrying" {
		t.Errorf("asked for %q", asked)
	}
}

func TestReindexCommand_findsARepositoryByItsFullName(t *testing.T) {
	t.Parallel()
	asked := 0
	node := http.NewServeMux()
	node.HandleFunc("GET /api/repos", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"repoId":3,"repoName":"example.com/a/bc"},{"repoId":7,"repoName":"example.com/a/b"}]`))
	})
	node.HandleFunc("POST /api/repos/7/reindex", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"repoId":7,"repoName":"example.com/a/b","jobId":"index:7"}`))
	})
	if stdout, _, err := run(t, node, "repo", "reindex", "example.com/a/b"); err != nil || asked != 1 || stdout != "example.com/a/b is queued as job index:7\n" {
		t.Errorf("%v, asked %d times: %s", err, asked, stdout)
	}
	if _, _, err := run(t, node, "repo", "reindex", "example.com/a"); err == nil || asked != 1 {
		t.Errorf("a part of a name is taken: %v", err)
	}
}

// For a partial name or a wrong host, the error lists similar names.
func TestUnknownRepository_suggestsNames(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("GET /api/repos", func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for _, name := range []string{"example.com/a/app", "example.com/b/app", "example.com/c/app", "example.com/d/app"} {
			if strings.Contains(name, r.FormValue("query")) {
				found = append(found, fmt.Sprintf(`{"repoId":7,"repoName":%q}`, name))
			}
		}
		fmt.Fprintf(w, "[%s]", strings.Join(found, ","))
	})
	for name, want := range map[string]string{
		"a/app":             `there is no repository "a/app"; names are written in full, as example.com/a/app`,
		"github.com/b/app":  `there is no repository "github.com/b/app"; names are written in full, as example.com/a/app, example.com/b/app, example.com/c/app`,
		"example.com/a/lib": `there is no repository "example.com/a/lib"; names are written in full, as in github.com/acme/app`,
	} {
		if _, _, err := run(t, node, "repo", "reindex", name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All pages of repositories are printed, as text and with --json.
func TestReposCommand_printsAllPages(t *testing.T) {
	t.Parallel()
	node := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, n := r.URL.Query(), 0
		if q.Get("query") != "app" || q.Get("state") != "failed" {
			t.Errorf("asked for %s", r.URL)
		}
		n = map[string]int{"1": reposPerPage, "2": 1}[q.Get("page")]
		entry := `{"repoName":"example.com/a/b` + q.Get("page") + `","state":"failed","documents":7,"indexBytes":2000,"connections":["work"],"error":"no","newer":1}`
		fmt.Fprintf(w, "[%s]", strings.Join(slices.Repeat([]string{entry}, n), ","))
	})
	stdout, _, err := run(t, node, "repo", "list", "--query", "app", "--state", "failed")
	if want := regexp.MustCompile(`(?m)^example.com/a/b2  failed  -  +7  +2\.0 kB  work +no$`); err != nil || strings.Count(stdout, "\n") != reposPerPage+2 || !want.MatchString(stdout) {
		t.Errorf("%v, got\n%s", err, stdout)
	}
	stdout, _, err = run(t, node, "repo", "list", "--query", "app", "--state", "failed", "--json")
	if err != nil || strings.Count(stdout, `"newer":1`) != reposPerPage+1 {
		t.Errorf("%v, got\n%s", err, stdout)
	}
}

package host

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// Common mistakes give messages with what to check, and remove nothing.
func TestList_issuesOfCommonMistakesSayWhatToDo(t *testing.T) {
	t.Parallel()
	page := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>nothing here</html>")
		}
	}
	json := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	token := &config.Token{Env: "T"}
	gitea := func(url string) config.Connection {
		return &config.Gitea{URL: url, Token: token, Orgs: []string{"acme"}}
	}
	gitlab := func(url string) config.Connection {
		return &config.GitLab{URL: url, Token: token, Groups: []string{"Acme"}}
	}
	github := func(url string) config.Connection {
		return &config.GitHub{URL: url, Token: token, Orgs: []string{"acme"}}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		conn   func(url string) config.Connection
		code   Code
		says   string
	}{
		"the address of something else":        {page(404), gitea, InvalidResponse, "The url of connection work is that of something else, or a proxy"},
		"the address of something else, gone":  {page(410), github, InvalidResponse, "The url of connection work is that of something else, or a proxy"},
		"a page to sign in":                    {page(200), gitlab, InvalidResponse, "a sign-in page or a proxy stands before its API"},
		"a group that is not there":            {json(404, `{"message":"404 Group Not Found"}`), gitlab, TargetNotFound, "nothing of this name, or the token of connection work may not see it"},
		"a token that was mistyped":            {json(401, `{"message":"401 Unauthorized"}`), gitlab, TokenRefused, "give it a new one"},
		"a token without the scope, of GitLab": {json(403, `{"error":"insufficient_scope","scope":"read_api"}`), gitlab, ScopeMissing, "read_api"},
		"a token without the scope, of Gitea":  {json(403, `{"message":"token does not have at least one of required scope(s)"}`), gitea, ScopeMissing, "read:repository"},
		"a token that sees nothing":            {json(200, `[]`), github, TargetEmpty, "the token of the connection may see none"},
		"another product at the address":       {json(404, `{"error":"404 Not Found"}`), gitea, TargetNotFound, "nothing of this name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.answer)
			t.Cleanup(s.Close)
			conn := c.conn(s.URL + "/") // with the slash that browsers show
			conn.Shared().Name = "work"
			h, err := Open(conn, tools(t))
			if err != nil {
				t.Fatal(err)
			}

			rec := &recorder{}
			err = h.List(t.Context(), rec)
			if len(rec.issues) == 0 && err != nil {
				rec.issues = append(rec.issues, issueOf("", err))
			}
			if len(rec.issues) != 1 || rec.issues[0].Code != c.code || !strings.Contains(rec.issues[0].Text, c.says) || Advice(c.code) == "" {
				t.Errorf("%v; issues %+v", err, rec.issues)
			}

			// A page for people does not prove that something is gone.
			if _, _, err := h.(Finder).Lookup(t.Context(), fmt.Sprintf("%s:%s:1", conn.Kind(), strings.TrimPrefix(s.URL, "http://"))); strings.Contains(name, "address of") && (err == nil || RefusesToken(err) || errors.Is(err, ErrGone)) {
				t.Errorf("looked up: %v", err)
			}
		})
	}
}

// Project keys may be in lower case.
func TestBitbucket_acceptsLowerCaseProjectKeys(t *testing.T) {
	t.Parallel()
	for _, st := range deploymentTests() {
		if !strings.HasPrefix(st.host.Name, "bitbucket") {
			continue
		}
		s := hosttest.Start(t, st.host, hosttest.Repo{ID: 1, Owner: "CORE", Project: "CORE", Name: "app", Branch: "main"})
		ts := tools(t)
		ts.Transport = s.Transport()
		conn := &config.Bitbucket{Token: standToken, User: hosttest.Account, URL: s.URL, Deployment: config.Cloud, Projects: []string{"core/core"}}
		if st.host.Name != "bitbucket cloud" {
			conn.Deployment, conn.Projects, conn.User = config.Server, []string{"core"}, ""
		}
		h, err := Open(conn, ts)
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{}
		if err := h.List(t.Context(), rec); err != nil || len(rec.repos) != 1 {
			t.Errorf("%s: %v, listed %+v, issues %s", st.host.Name, err, rec.repos, rec.problems())
		}
	}
}

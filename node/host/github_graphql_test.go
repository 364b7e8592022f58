package host

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// named returns a server and a connection to n single repositories, of which every tenth does not
// exist.
func named(t *testing.T, d *hosttest.Deployment, n int) (*hosttest.Server, *config.GitHub) {
	t.Helper()
	var there []hosttest.Repo
	conn := &config.GitHub{Token: standToken}
	for i := range n {
		r := hosttest.Repo{
			ID: int64(i + 1), Owner: "acme", Name: fmt.Sprintf("r-%03d", i), Branch: "main", Description: "it's \"one\"", Topics: []string{"Go", "web"},
			Private: i%2 == 1, Internal: i%8 == 3, Fork: i%3 == 1, Archived: i%5 == 1, Disabled: i%7 == 1, Stars: i, Size: 2_000_000, Pushed: time.Date(2026, 2, 1, 0, i, 0, 0, time.UTC),
		}
		if i%10 != 9 {
			there = append(there, r)
		}
		conn.Repos = append(conn.Repos, r.Path())
	}
	s := hosttest.Start(t, d, there...)
	conn.Name, conn.URL = "work", s.URL
	return s, conn
}

// listNamed lists a connection.
func listNamed(t *testing.T, s *hosttest.Server, conn *config.GitHub) (Host, *recorder, error) {
	t.Helper()
	tools := tools(t)
	tools.Transport = s.Transport()
	h, err := Open(conn, tools)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	return h, rec, h.List(t.Context(), rec)
}

// Single repositories are asked for a hundred at once, with the same result as separate calls.
func TestGitHubGraphQL_looksUpAHundredRepositoriesAtOnce(t *testing.T) {
	t.Parallel()
	for _, d := range []*hosttest.Deployment{hosttest.GitHub(), hosttest.GitHubServer()} {
		for _, n := range []int{minBatched - 1, minBatched, 250} {
			t.Run(fmt.Sprint(d.Name, " ", n), func(t *testing.T) {
				t.Parallel()
				s, conn := named(t, d, n)
				missing := n / 10
				h, rec, err := listNamed(t, s, conn)
				if err != nil || len(rec.repos) != n-missing || strings.Count(rec.problems(), "TARGET_NOT_FOUND@repos/acme/r-") != missing || len(rec.issues) != missing {
					t.Fatalf("%d listed, %v, issues %s", len(rec.repos), err, rec.problems())
				}

				calls := n
				if n >= minBatched {
					calls = (n+batchSize-1)/batchSize + missing
				}
				if got, told := s.Calls(), h.(Metered).Allowance(); got != calls || told.Calls != uint64(calls) || n >= minBatched && told.Limit != 5000 {
					t.Errorf("%d calls, want %d; told %+v", got, calls, told)
				}

				// Each equals its look-up by number, and has its own target.
				for _, r := range rec.repos {
					alone, chosen, err := h.(Finder).Lookup(t.Context(), r.ExternalID)
					alone.Target = "repos/" + r.DisplayName
					if err != nil || !chosen || fmt.Sprintf("%+v", alone) != fmt.Sprintf("%+v", r) {
						t.Errorf("at once %+v\nalone   %+v, %v, %v", r, alone, chosen, err)
					}
				}
			})
		}
	}
}

// If the query fails, each repository is asked for separately. A limit or a refused token ends the
// listing.
func TestGitHubGraphQL_failedQueryFallsBackToSingleCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		listed int
		code   Code // of each issue; "": none
	}{
		"no such page": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, 27, TargetNotFound},
		"not for apps": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"Resource not accessible by integration"}`)
		}, 27, TargetNotFound},
		"a failing server": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, 27, TargetNotFound},
		"a page":           {func(w http.ResponseWriter) { fmt.Fprint(w, `<html>`) }, 27, TargetNotFound},
		"errors alone":     {func(w http.ResponseWriter) { fmt.Fprint(w, `{"errors":[{"message":"Something went wrong"}]}`) }, 27, TargetNotFound},
		"data of null":     {func(w http.ResponseWriter) { fmt.Fprint(w, `{"data":null}`) }, 27, TargetNotFound},
		"a limit": {func(w http.ResponseWriter) {
			w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC).Unix()))
			fmt.Fprint(w, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`)
		}, 0, RateLimited},
		"a refused token": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, 0, TokenRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, conn := named(t, hosttest.GitHub(), 30)
			s.Do(func(s *hosttest.State) {
				*s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/graphql" {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					c.answer(w)
					return true
				}
			})

			_, rec, err := listNamed(t, s, conn)
			if len(rec.repos) != c.listed || (err == nil) != (c.listed > 0) {
				t.Errorf("%d listed, want %d: %v", len(rec.repos), c.listed, err)
			}
			told := string(c.code)
			if err != nil {
				told = fmt.Sprint(codeOf(err))
			} else if len(rec.issues) != 3 || !strings.HasPrefix(rec.problems(), told) {
				t.Errorf("issues %s, want three of %s", rec.problems(), told)
			}
			if told != string(c.code) {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
}

// codeOf returns the code of a refusal.
func codeOf(err error) Code { return issueOf("", err).Code }

// The query is JSON, which names cannot break out of.
func TestGitHubGraphQL_escapesNames(t *testing.T) {
	t.Parallel()
	b := &githubBatch{names: []string{`acme/a.b-c_d`, `o"wner/n\ame`}}
	text, err := json.Marshal(map[string]string{"query": b.queryText()})
	if err != nil || !strings.Contains(b.queryText(), `r1:repository(owner:"o\"wner",name:"n\\ame",followRenames:true)`) {
		t.Errorf("%s, %v", text, err)
	}
}

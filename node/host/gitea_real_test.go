package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/shard/git"
)

// realTools returns tools for a real server, with a token.
func realTools(t *testing.T, token string) Tools {
	tools := tools(t)
	tools.Secret = func(context.Context, config.Token) (string, error) { return token, nil }
	return tools
}

// listReal lists a connection to a real server.
func listReal(t *testing.T, token string, conn *config.Gitea) *recorder {
	t.Helper()
	h, err := Open(conn, realTools(t, token))
	if err != nil {
		t.Fatal(err)
	}
	var got recorder
	if err := h.List(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

// TestRealGitea_listsRepositories repeats the other Gitea tests with a real server. Each step needs the
// steps before it.
func TestRealGitea_listsRepositories(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	token := &config.Token{Env: "T"}
	list := func(token string, conn config.Gitea) *recorder {
		t.Helper()
		conn.URL = s.URL
		return listReal(t, token, &conn)
	}
	id := func(n int64) string {
		return "gitea:" + strings.TrimPrefix(s.URL, "http://") + ":" + strconv.FormatInt(n, 10)
	}

	// more repositories than a page
	s.Org("acme")
	s.Org("other")
	s.Repos("acme", "r%03d", 103)
	limited := s.User("ann", "read:repository", "read:organization", "read:user")
	blind := s.User("bob", "read:user")
	secret := s.Repo("ann", "secret", giteatest.Options{Private: true, Description: "of Ann"})
	tool := s.Repo("acme", "tool", giteatest.Options{})

	got := list(s.Token, config.Gitea{Token: token, Orgs: []string{"acme"}})
	if len(got.repos) != 104 || got.problems() != "" {
		t.Errorf("an organisation over three pages: %d repositories, %s", len(got.repos), got.problems())
	}
	for _, r := range got.repos {
		if want := strings.HasSuffix(r.Name, "/tool"); r.Empty == want {
			t.Errorf("%s: empty %v", r.Name, r.Empty)
		}
	}

	// A token sees what its user may see. Anonymous callers see the rest.
	got = list(limited, config.Gitea{Token: token, Users: []string{"ann"}, Repos: []string{"acme/tool"}})
	if got.names() != "acme/tool ann/secret" || got.problems() != "" {
		t.Errorf("with the token of ann: %s, %s", got.names(), got.problems())
	}
	for _, r := range got.repos {
		if r.DisplayName == "ann/secret" && (r.ExternalID != id(secret) || r.Visibility != Private || r.Description != "of Ann" || r.DefaultBranch != "main") {
			t.Errorf("%+v", r)
		}
	}
	got = list("", config.Gitea{Users: []string{"ann"}, Repos: []string{"acme/tool"}})
	if got.names() != "acme/tool" || got.problems() != "TARGET_EMPTY@users/ann" {
		t.Errorf("without a token: %s, %s", got.names(), got.problems())
	}

	// Refusals have their own codes.
	h, err := Open(&config.Gitea{URL: s.URL, Token: token, Orgs: []string{"acme"}}, realTools(t, "0123456789012345678901234567890123456789"))
	if err != nil {
		t.Fatal(err)
	}
	r := (*Refusal)(nil)
	if err := h.List(t.Context(), &recorder{}); !errors.As(err, &r) || r.Code != TokenRefused {
		t.Errorf("with a token that the server does not know: %v", err)
	}
	h, _ = Open(&config.Gitea{URL: s.URL, Token: token, Orgs: []string{"acme"}}, realTools(t, blind))
	if err := h.List(t.Context(), &recorder{}); !errors.As(err, &r) || r.Code != ScopeMissing {
		t.Errorf("with a token that lacks a scope: %v", err)
	}
	if got = list(s.Token, config.Gitea{Token: token, Orgs: []string{"none", "other"}}); got.problems() != "TARGET_EMPTY@orgs/other TARGET_NOT_FOUND@orgs/none!" {
		t.Errorf("an organisation that is not there: %s", got.problems())
	}

	// A repository keeps its id when renamed, transferred or archived.
	s.Edit("acme/tool", map[string]any{"name": "hammer"})
	s.Edit("acme/hammer", map[string]any{"archived": true})
	s.Transfer("acme/r000", "other")
	chosen := config.Gitea{Token: token, Orgs: []string{"acme"}, Exclude: config.GiteaExclude{Repos: []string{"acme/r*"}}}
	got = list(s.Token, chosen)
	if got.names() != "acme/hammer" || got.repos[0].ExternalID != id(tool) || !got.repos[0].Archived {
		t.Errorf("after a rename: %+v", got.repos)
	}
	got = list(s.Token, config.Gitea{Token: token, Repos: []string{"acme/tool"}})
	if got.names() != "acme/hammer" {
		t.Errorf("by the former name: %s, %s", got.names(), got.problems())
	}
	if got = list(s.Token, config.Gitea{Token: token, Orgs: []string{"other"}}); got.names() != "other/r000" {
		t.Errorf("after a transfer: %s", got.names())
	}
	chosen.Exclude.Archived = true
	if got = list(s.Token, chosen); got.names() != "" || got.left[ByArchive] != 1 {
		t.Errorf("without archived ones: %s, %v", got.names(), got.left)
	}

	// A deleted repository differs from one of another host.
	chosen.URL, chosen.Exclude = s.URL, config.GiteaExclude{}
	h, err = Open(&chosen, realTools(t, s.Token))
	if err != nil {
		t.Fatal(err)
	}
	if r, still, err := h.(Finder).Lookup(t.Context(), id(tool)); err != nil || !still || r.DisplayName != "acme/hammer" {
		t.Errorf("look-up of a renamed one: %+v, %v, %v", r, still, err)
	}
	s.Delete("acme/hammer")
	if _, _, err := h.(Finder).Lookup(t.Context(), id(tool)); !errors.Is(err, ErrGone) {
		t.Errorf("look-up of a deleted one: %v", err)
	}
}

// restarting is a transport that stops the server before some of the first calls, so that they
// fail. Its wait returns when the server is back.
type restarting struct {
	http.RoundTripper
	server *giteatest.Server
	before []int // numbers of these calls

	mu       sync.Mutex // guards the fields below
	calls    int
	restarts int
	down     bool
}

// RoundTrip implements http.RoundTripper.
func (r *restarting) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	if r.calls++; slices.Contains(r.before, r.calls) && !r.down {
		r.server.Stop()
		r.down, r.restarts = true, r.restarts+1
	}
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(req)
}

// wait is for Tools.Wait.
func (r *restarting) wait(ctx context.Context, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		r.server.Launch()
		r.down = false
	}
	return ctx.Err()
}

// The server restarts several times during a listing of 300 repositories in five organisations.
// Each repository is listed once.
func TestRealGitea_listingSurvivesItsRestarts(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	var orgs []string
	for i := range 5 {
		org := fmt.Sprintf("org%d", i)
		orgs = append(orgs, org)
		s.Org(org)
		s.Repos(org, "r%02d", 60)
	}

	ts := realTools(t, s.Token)
	r := &restarting{RoundTripper: ts.Transport, server: s, before: []int{2, 5, 9}}
	ts.Transport, ts.Wait = r, r.wait
	h, err := Open(&config.Gitea{URL: s.URL, Token: &config.Token{Env: "T"}, Orgs: orgs}, ts)
	if err != nil {
		t.Fatal(err)
	}
	var got recorder
	if err := h.List(t.Context(), &got); err != nil {
		t.Fatal(err)
	}

	seen := map[string]int{}
	for _, repo := range got.repos {
		seen[repo.DisplayName]++
	}
	for _, org := range orgs {
		for j := range 60 {
			if name := fmt.Sprintf("%s/r%02d", org, j); seen[name] != 1 {
				t.Errorf("%s came %d times", name, seen[name])
			}
		}
	}
	if len(got.repos) != 300 || got.problems() != "" {
		t.Errorf("%d repositories, %s", len(got.repos), got.problems())
	}
	if r.restarts < 2 {
		t.Errorf("the server was restarted %d times in %d calls", r.restarts, r.calls)
	}
	t.Logf("%d repositories by %d calls and %d restarts", len(got.repos), r.calls, r.restarts)
}

// TestRealGitea_fetchOfAPrivateRepositoryHidesTheToken fetches with the result of Credential, and checks
// that the token is nowhere else.
func TestRealGitea_fetchOfAPrivateRepositoryHidesTheToken(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	token := s.User("ann", "read:repository", "read:user")
	s.Repo("ann", "secret", giteatest.Options{Private: true})
	s.Push("ann/secret", map[string]string{"main.go": "package main // unseen"})
	conn := &config.Gitea{URL: s.URL, Token: &config.Token{Env: "T"}, Users: []string{"ann"}}
	repo := listReal(t, token, conn).repos[0]

	dir := filepath.Join(t.TempDir(), "mirror.git")
	mirror := git.Open(dir)
	for _, c := range []struct {
		token string
		good  bool
	}{{"0123456789012345678901234567890123456789", false}, {token, true}} {
		secret, err := Credential(t.Context(), conn, repo.Remote.URL, realTools(t, c.token))
		if err != nil {
			t.Fatal(err)
		}
		remote := repo.Remote
		remote.Credential = secret
		done, err := mirror.Fetch(t.Context(), remote, git.FetchOptions{})
		if (err == nil) != c.good || c.good && !done.Changed || err != nil && strings.Contains(err.Error(), c.token) {
			t.Errorf("fetch, the token being good: %v: %+v, %v", c.good, done, err)
		}
	}

	// The mirror contains no credential.
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(token)) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

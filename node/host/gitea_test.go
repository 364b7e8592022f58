package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// acme returns the repositories of most tests.
func acme() []giteaRepo {
	no := false
	return []giteaRepo{
		{ID: 1, FullName: "acme/app", DefaultBranch: "main", Size: 10, Stars: 3, Topics: []string{"Web", "go"}, Description: "an app"},
		{ID: 2, FullName: "acme/fork", Fork: true},
		{ID: 3, FullName: "acme/old", Archived: true},
		{ID: 4, FullName: "acme/secret", Private: true},
		{ID: 5, FullName: "acme/wiki", HasCode: &no},
		{ID: 6, FullName: "ann/dots.git", Internal: true, Empty: true},
		{ID: 7, FullName: "other/tool"},
	}
}

func openTest(t *testing.T, conn config.Connection) Host {
	t.Helper()
	h, err := Open(conn, tools(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestGitea_listsTheSelectedRepositories(t *testing.T) {
	t.Parallel()
	token := &config.Token{Env: "T"}
	for name, c := range map[string]struct {
		conn     config.Gitea
		names    string
		problems string
		left     string
	}{
		"an organisation over three pages": {config.Gitea{Orgs: []string{"acme"}}, "git/acme/app git/acme/fork git/acme/old git/acme/secret", "", ""},
		"a user, with .git in a name":      {config.Gitea{Users: []string{"ann"}}, "git/ann/dots.git", "", ""},
		"one repository":                   {config.Gitea{Repos: []string{"other/tool"}}, "git/other/tool", "", ""},
		"the same twice":                   {config.Gitea{Orgs: []string{"ACME"}, Repos: []string{"acme/app"}}, "git/acme/app git/acme/fork git/acme/old git/acme/secret", "", ""},
		"without forks":                    {config.Gitea{Orgs: []string{"acme"}, Exclude: config.GiteaExclude{Forks: true}}, "git/acme/app git/acme/old git/acme/secret", "", "forks=1"},
		"without archived":                 {config.Gitea{Orgs: []string{"acme"}, Exclude: config.GiteaExclude{Archived: true}}, "git/acme/app git/acme/fork git/acme/secret", "", "archived=1"},
		"without some names":               {config.Gitea{Orgs: []string{"acme"}, Exclude: config.GiteaExclude{Repos: []string{"ACME/{app,old}"}}}, "git/acme/fork git/acme/secret", "", "excluded by name=2"},
		"one target is not there":          {config.Gitea{Orgs: []string{"acme", "none"}}, "git/acme/app git/acme/fork git/acme/old git/acme/secret", "TARGET_NOT_FOUND@orgs/none!", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGiteaServer(t, acme()...)
			c.conn.URL, c.conn.Token = s.URL+"/git/", token
			var got recorder
			if err := openTest(t, &c.conn).List(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if got.names() != c.names || got.problems() != c.problems {
				t.Errorf("listed %s\n  want %s\nissues %s\n  want %s", got.names(), c.names, got.problems(), c.problems)
			}
			var left []string
			for why, n := range got.left {
				left = append(left, fmt.Sprintf("%s=%d", why, n))
			}
			if strings.Join(left, " ") != c.left {
				t.Errorf("left out %v, want %s", left, c.left)
			}
		})
	}
}

func TestGitea_readsTheFieldsOfARepository(t *testing.T) {
	t.Parallel()
	s := newGiteaServer(t, acme()...)
	var got recorder
	conn := &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Repos: []string{"acme/app", "acme/secret", "ann/dots.git"}}
	if err := openTest(t, conn).List(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(s.URL, "http://")
	for _, r := range got.repos {
		switch r.DisplayName {
		case "acme/app":
			if r.ExternalID != "gitea:"+host+"/git:1" || r.Remote.URL != s.URL+"/git/acme/app.git" || r.WebURL != s.URL+"/git/acme/app" ||
				r.SizeBytes != 10240 || r.Stars != 3 || strings.Join(r.Topics, ",") != "web,go" || r.Visibility != Public || r.Description != "an app" || r.Target != "repos/acme/app" {
				t.Errorf("%+v", r)
			}
		case "acme/secret":
			if r.Visibility != Private {
				t.Errorf("%+v", r)
			}
		case "ann/dots.git":
			if r.Visibility != Internal || !r.Empty || r.Remote.URL != s.URL+"/git/ann/dots.git.git" {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestRepositoryLookup_distinguishesGoneFromUnknown(t *testing.T) {
	t.Parallel()
	s := newGiteaServer(t, acme()...)
	h := openTest(t, &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Orgs: []string{"acme"}}).(Finder)
	id := func(n int) string { return fmt.Sprintf("gitea:%s/git:%d", strings.TrimPrefix(s.URL, "http://"), n) }

	if r, chosen, err := h.Lookup(t.Context(), id(1)); err != nil || !chosen || r.DisplayName != "acme/app" {
		t.Errorf("%+v, %v, %v", r, chosen, err)
	}
	if _, chosen, err := h.Lookup(t.Context(), id(7)); err != nil || chosen {
		t.Errorf("a repository of an organisation that is not listed is chosen: %v", err)
	}
	if _, _, err := h.Lookup(t.Context(), id(99)); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
	if _, _, err := h.Lookup(t.Context(), "gitea:elsewhere:1"); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a repository of another host: %v", err)
	}
	s.fault = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	if _, _, err := h.Lookup(t.Context(), id(1)); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a server that fails: %v", err)
	}
}

// asksFirst is a transport that delays all calls until the first call whose path contains a text is
// sent.
type asksFirst struct {
	http.RoundTripper
	part  string
	asked chan struct{}
	once  sync.Once
}

func (a *asksFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, a.part) {
		a.once.Do(func() { close(a.asked) })
	}
	select {
	case <-a.asked:
		return a.RoundTripper.RoundTrip(r)
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

func TestList_isPartialIfTheServerFails(t *testing.T) {
	t.Parallel()
	html := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/orgs/acme") {
				return false
			}
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>sign in</html>")
			return true
		}
	}
	text := func(status int, body string, head ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/orgs/acme") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i < len(head); i += 2 {
				w.Header().Set(head[i], head[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		"a sign-in page with 200":   {html(200), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
		"a sign-in page with 203":   {html(203), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
		"JSON of another shape":     {text(200, `{"repos": []}`), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
		"a body cut in the middle":  {text(200, `[{"id": 1,`), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
		"an entry without a number": {text(200, `[{"full_name": "acme/app"}]`), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
		"not there":                 {text(404, `{}`), "TARGET_NOT_FOUND@orgs/acme!"},
		"forbidden":                 {text(403, `{"message": "no"}`), "FORBIDDEN@orgs/acme!"},
		"a scope is missing":        {text(403, `{"message": "token does not have at least one of required scope(s)"}`), "SCOPE_MISSING@orgs/acme!"},
		"always 500":                {text(500, ``), "UNREACHABLE@orgs/acme!"},
		"a limit for a day":         {text(429, ``, "Retry-After", "80000"), "RATE_LIMITED@orgs/acme!"},
		"pages in a circle":         {text(200, `[{"id": 1, "full_name": "acme/app"}]`, "Link", `</x?limit=50&page=1>; rel="next"`), "INVALID_PROVIDER_RESPONSE@orgs/acme!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGiteaServer(t, acme()...)
			s.fault = c.fault

			// A limit is for the whole credential. If acme were refused first, other would not be
			// asked.
			tools := tools(t)
			tools.Transport = &asksFirst{tools.Transport, "/orgs/other", make(chan struct{}), sync.Once{}}

			conn := &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Orgs: []string{"acme", "other"}}
			h, err := Open(conn, tools)
			if err != nil {
				t.Fatal(err)
			}

			var got recorder
			if err := h.List(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if got.problems() != c.want || !strings.Contains(got.names(), "git/other/tool") {
				t.Errorf("issues %s, want %s; listed %s", got.problems(), c.want, got.names())
			}
		})
	}
}

func TestHTTPClient_retriesTemporaryErrors(t *testing.T) {
	t.Parallel()
	s := newGiteaServer(t, acme()...)
	failures := 3
	s.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if failures == 0 {
			return false
		}
		failures--
		w.Header().Set("Retry-After", "7")
		w.WriteHeader([]int{429, 503, 500, 408}[failures])
		return true
	}
	var got recorder
	conn := &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Orgs: []string{"acme"}}
	if err := openTest(t, conn).List(t.Context(), &got); err != nil || got.problems() != "" || len(got.repos) != 4 {
		t.Errorf("%v, %s, %s", err, got.names(), got.problems())
	}
}

func TestList_endsAtARefusedToken(t *testing.T) {
	t.Parallel()
	s := newGiteaServer(t, acme()...)
	conn := &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Orgs: []string{"acme", "other", "ann", "x", "y"}}
	conn.Name = "main"
	bad := tools(t)
	bad.Secret = func(context.Context, config.Token) (string, error) { return "wrong", nil }
	h, err := Open(conn, bad)
	if err != nil {
		t.Fatal(err)
	}
	err = h.List(t.Context(), &recorder{})
	if r := (*Refusal)(nil); !errors.As(err, &r) || r.Code != TokenRefused || !strings.Contains(err.Error(), "connection main") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
	if s.calls > parallelTargets {
		t.Errorf("%d calls with a token that was refused", s.calls)
	}
}

func TestHTTPClient_sendsTheTokenOnlyToItsHost(t *testing.T) {
	t.Parallel()
	thief := newGiteaServer(t)
	s := newGiteaServer(t, acme()...)
	s.fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, thief.URL+"/git/api/v1/orgs/acme/repos", http.StatusFound)
		return true
	}
	var got recorder
	conn := &config.Gitea{URL: s.URL + "/git", Token: &config.Token{Env: "T"}, Orgs: []string{"acme"}}
	err := openTest(t, conn).List(t.Context(), &got)
	if err == nil || !strings.Contains(err.Error(), "redirects to "+thief.URL) || thief.calls > 0 {
		t.Errorf("%v; the other host was called %d times", err, thief.calls)
	}
}

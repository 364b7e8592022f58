package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// scriptedServer is a server with fixed answers, taken from the API's documentation. It records other
// calls.
type scriptedServer struct {
	*httptest.Server
	auth    string // required Authorization header
	answers map[string]string

	mu      sync.Mutex
	unknown []string
	calls   int
}

// answering returns a server with the answers, by path and query. An answer may begin with "STATUS
// n" and headers, each on a line, then an empty line. HOST is replaced by the server's address.
func answering(t *testing.T, auth string, answers map[string]string) *scriptedServer {
	t.Helper()
	s := &scriptedServer{auth: auth, answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *scriptedServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if r.Header.Get("Authorization") != s.auth {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range s.answers {
			if !yield(k) {
				return
			}
		}
	}) {
		path, query, _ := strings.Cut(key, "?")
		if r.URL.EscapedPath() == path && hasAll(r, query) {
			s.answer(w, strings.ReplaceAll(s.answers[key], "HOST", s.URL))
			return
		}
	}
	s.unknown = append(s.unknown, r.URL.String())
	w.WriteHeader(http.StatusNotFound)
}

func hasAll(r *http.Request, query string) bool {
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != "" && r.URL.Query().Get(name) != value {
			return false
		}
	}
	return true
}

func (s *scriptedServer) answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if rest, ok := strings.CutPrefix(text, "STATUS "); ok {
		head, body, _ := strings.Cut(rest, "\n\n")
		lines := strings.Split(head, "\n")
		status = atoi(lines[0])
		for _, l := range lines[1:] {
			name, value, _ := strings.Cut(l, ": ")
			w.Header().Set(name, value)
		}
		text = body
	}
	w.WriteHeader(status)
	fmt.Fprint(w, text)
}

// told returns a listing as text, with a line for each repository: its name, clone URL and other
// properties.
func told(rec *recorder, host string) string {
	var lines []string
	for _, r := range rec.repos {
		line := strings.TrimPrefix(r.Name, host+"/") + " " + strings.TrimPrefix(r.Remote.URL, "http://"+host)
		for _, fact := range []struct {
			is   bool
			word string
		}{{r.Fork, "fork"}, {r.Archived, "archived"}, {r.Empty, "empty"}, {r.Visibility == Private, "private"}, {r.Visibility == Internal, "internal"}, {r.Unfetchable != "", "unfetchable"}} {
			if fact.is {
				line += " " + fact.word
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestList_returnsTheRepositoriesForEachKindOfHost(t *testing.T) {
	t.Parallel()
	token := &config.Token{Env: "T"}
	for name, c := range map[string]struct {
		auth    string
		answers map[string]string
		conn    func(url string) config.Connection
		want    string
		issues  string
		left    string
		gone    string // external ids that the host does not have
		user    string // user of the git credential
	}{
		"github enterprise": {
			auth: "Bearer sekret",
			answers: map[string]string{
				"/ghe/api/v3/orgs/acme/repos?page=1": "STATUS 200\nLink: <HOST/ghe/api/v3/organizations/9/repos?page=2>; rel=\"next\"\nX-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 4990\nX-RateLimit-Reset: 1772370000\n\n" +
					`[{"id":1,"full_name":"acme/app","visibility":"public","topics":["Web"],"size":20,"default_branch":"main"},{"id":2,"full_name":"acme/copy","fork":true,"private":true,"topics":["web"],"size":20}]`,
				"/ghe/api/v3/organizations/9/repos?page=2": `[{"id":3,"full_name":"acme/inner","visibility":"internal","private":true,"topics":["web"],"disabled":true},{"id":4,"full_name":"acme/none","topics":[]},{"id":5,"full_name":"acme/big","topics":["web"],"size":5000}]`,
				"/ghe/api/v3/users/ann/repos":              `[{"id":6,"full_name":"ann/tool","topics":["webapp"]}]`,
				"/ghe/api/v3/user/repos":                   "STATUS 403\n\n{\"message\":\"Resource not accessible by integration\"}",
				"/ghe/api/v3/repositories/1":               `{"id":1,"full_name":"acme/app","topics":["web"]}`,
			},
			conn: func(url string) config.Connection {
				most := int64(1_000_000)
				return &config.GitHub{Token: token, URL: url + "/ghe", Orgs: []string{"acme"}, Users: []string{"ann"}, Topics: []string{"web*"}, Exclude: config.GitHubExclude{Size: config.Size{Max: &most}}}
			},
			want: "ghe/acme/app /ghe/acme/app.git\nghe/acme/copy /ghe/acme/copy.git fork private\nghe/acme/inner /ghe/acme/inner.git internal unfetchable\nghe/ann/tool /ghe/ann/tool.git",
			left: "size=1 without a chosen topic=1", gone: "github:HOST/ghe:99", user: "x-access-token",
		},
		"gitlab": {
			auth: "Bearer sekret",
			answers: map[string]string{
				"/api/v4/groups/a%2Fb/projects?page=1": "STATUS 200\nLink: <HOST/api/v4/groups/a%2Fb/projects?page=2&include_subgroups=true>; rel=\"next\"\n\n" +
					`[{"id":1,"path_with_namespace":"a/b/app","visibility":"private","default_branch":"main"},{"id":2,"path_with_namespace":"a/b/c/deep","visibility":"internal","empty_repo":true}]`,
				"/api/v4/groups/a%2Fb/projects?page=2": `[{"id":3,"path_with_namespace":"a/b/nocode","repository_access_level":"disabled"},{"id":4,"path_with_namespace":"a/b/copy","forked_from_project":{"id":1},"visibility":"public"}]`,
				"/api/v4/projects/x%2Fy%2Fz":           `{"id":5,"path_with_namespace":"x/y/z","visibility":"public","import_status":"started","namespace":{"kind":"group"}}`,
				"/api/v4/personal_access_tokens/self":  `{"id":9,"name":"shoal","expires_at":"2026-03-05","scopes":["read_api"]}`,
				"/api/v4/users/ann/projects":           `[{"id":6,"path_with_namespace":"ann/own","visibility":"public","namespace":{"kind":"user"}}]`,
			},
			conn: func(url string) config.Connection {
				return &config.GitLab{Token: token, URL: url, Groups: []string{"a/b"}, Projects: []string{"x/y/z"}, Users: []string{"ann"}, Exclude: config.GitLabExclude{UserOwnedProjects: true}}
			},
			want: "a/b/app /a/b/app.git private\na/b/c/deep /a/b/c/deep.git empty internal\na/b/copy /a/b/copy.git fork\nx/y/z /x/y/z.git unfetchable",
			left: "of users=1", gone: "gitlab:HOST:99", user: "oauth2",
		},
		"gerrit": {
			answers: map[string]string{
				"/r/projects/?S=0&p=platform": ")]}'\n" + `{"All-Users":{"state":"ACTIVE"},"platform/app":{"state":"ACTIVE","description":"an app","web_links":[{"url":"/plugins/gitiles/platform/app"}]},"platform/old":{"state":"READ_ONLY"}}`,
				"/r/projects/?S=3":            ")]}'\n" + `{"platform/hidden":{"state":"HIDDEN"},"platx":{"state":"ACTIVE"}}`,
				"/r/projects/?S=5":            ")]}'\n{}",
			},
			conn: func(url string) config.Connection {
				return &config.Gerrit{URL: url + "/r", Projects: []string{"platform/**"}, Exclude: config.GerritExclude{ReadOnly: true}}
			},
			want: "r/platform/app /r/platform/app\nr/platform/hidden /r/platform/hidden",
			left: "archived=1", gone: "gerrit:HOST/r:nothing",
		},
		"bitbucket cloud": {
			auth: basicOf("ann@example.com", "sekret"),
			answers: map[string]string{
				"/2.0/repositories/ws?page=":  `{"next":"HOST/2.0/repositories/ws?page=2","values":[{"uuid":"{1}","full_name":"ws/app","project":{"key":"P"},"mainbranch":{"name":"main"},"size":10},{"uuid":"{2}","full_name":"ws/copy","project":{"key":"P"},"parent":{"uuid":"{1}"},"is_private":true}]}`,
				"/2.0/repositories/ws?page=2": `{"values":[{"uuid":"{3}","full_name":"ws/app2","project":{"key":"Q"},"mainbranch":{"name":"main"}}]}`,
			},
			conn: func(url string) config.Connection {
				return &config.Bitbucket{Token: token, User: "ann@example.com", URL: url + "/2.0", Workspaces: []string{"ws"}, All: true, Exclude: config.BitbucketExclude{Repos: []string{"ws/Q/*"}}}
			},
			want: "ws/P/app /ws/app.git\nws/P/copy /ws/copy.git fork empty private", issues: "NO_EFFECT",
			left: "excluded by name=1", gone: "bitbucket:HOST:ws/{9}", user: "x-bitbucket-api-token-auth",
		},
		"bitbucket data center": {
			auth: "Bearer sekret",
			answers: map[string]string{
				"/bb/rest/api/1.0/repos?projectkey=KEY&archived=ALL&start=":  `{"isLastPage":false,"nextPageStart":7,"values":[{"id":1,"slug":"app","project":{"key":"KEY"},"public":true},{"id":2,"slug":"other","project":{"key":"ELSE"}}]}`,
				"/bb/rest/api/1.0/repos?projectkey=KEY&archived=ALL&start=7": `{"isLastPage":false,"nextPageStart":9,"values":[]}`,
				"/bb/rest/api/1.0/repos?projectkey=KEY&archived=ALL&start=9": `{"isLastPage":true,"values":[{"id":3,"slug":"old","project":{"key":"KEY"},"archived":true,"state":"OFFLINE"}]}`,
				"/bb/rest/api/1.0/projects/~ann/repos/x":                     `{"id":4,"slug":"x","project":{"key":"~ANN","type":"PERSONAL"}}`,
				"/bb/rest/api/1.0/repos?archived=ALL&projectkey=":            `{"isLastPage":true,"values":[{"id":1,"slug":"app","project":{"key":"KEY"}}]}`,
			},
			conn: func(url string) config.Connection {
				return &config.Bitbucket{Token: token, Deployment: config.Server, URL: url + "/bb", Projects: []string{"KEY"}, Repos: []string{"~ann/x"}}
			},
			want: "bb/KEY/app /bb/scm/key/app.git\nbb/KEY/old /bb/scm/key/old.git archived private unfetchable\nbb/~ANN/x /bb/scm/~ann/x.git private",
			gone: "bitbucket:HOST/bb:99", user: "x-token-auth",
		},
		"azure devops": {
			auth: basicOf("", "sekret"),
			answers: map[string]string{
				"/org/_apis/git/repositories?api-version=7.1":                   "STATUS 400\n\n{}",
				"/org/_apis/git/repositories?api-version=6.0":                   `{"count":3,"value":[{"id":"g1","name":"my app","project":{"name":"Big Project","visibility":"private"},"defaultBranch":"refs/heads/main","size":5},{"id":"g2","name":"off","project":{"name":"Big Project"},"isDisabled":true},{"id":"g3","name":"x","project":{"name":"Secret"}}]}`,
				"/org/Other%20One/_apis/git/repositories/r%231?api-version=7.1": `{"id":"g4","name":"r#1","project":{"name":"Other One","visibility":"public"},"defaultBranch":"refs/heads/dev"}`,
			},
			conn: func(url string) config.Connection {
				return &config.AzureDevOps{Token: token, Deployment: config.Server, URL: url, Orgs: []string{"org"}, Repos: []string{"org/Other One/r#1"}, Exclude: config.AzureDevOpsExclude{Disabled: true, Projects: []string{"secret"}}}
			},
			want: "org/Big Project/my app /org/Big%20Project/_git/my%20app private\norg/Other One/r#1 /org/Other%20One/_git/r%231",
			left: "disabled=1 excluded by project=1", gone: "azuredevops:HOST:org/g9", user: "shoal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answering(t, c.auth, c.answers)
			conn := c.conn(s.URL)
			h := openTest(t, conn)
			var rec recorder
			if err := h.List(t.Context(), &rec); err != nil {
				t.Fatalf("%v; not known: %q", err, s.unknown)
			}
			host := strings.TrimPrefix(s.URL, "http://")
			if got := told(&rec, host); got != c.want {
				t.Errorf("listed\n%s\nwant\n%s", got, c.want)
			}
			if got := rec.problems(); got != c.issues {
				t.Errorf("issues %s, want %s; %+v", got, c.issues, rec.issues)
			}
			var left []string
			for why, n := range rec.left {
				left = append(left, fmt.Sprintf("%s=%d", why, n))
			}
			slices.Sort(left)
			if strings.Join(left, " ") != c.left {
				t.Errorf("left out %q, want %q", left, c.left)
			}
			if len(s.unknown) > 0 {
				t.Errorf("asked for %q", s.unknown)
			}
			if _, _, err := h.(Finder).Lookup(t.Context(), strings.ReplaceAll(c.gone, "HOST", host)); !errors.Is(err, ErrGone) {
				t.Errorf("a look-up of what is not there: %v, want ErrGone", err)
			}
			cred, err := Credential(t.Context(), conn, "", tools(t))
			if err != nil || cred.User != c.user || c.user != "" && cred.Password != "sekret" {
				t.Errorf("for git: %v, %v; want the user %q", cred.User, err, c.user)
			}
		})
	}
}

func basicOf(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// Each connection kind of the configuration has all of its parts: a row in kinds, a conformance
// deployment, links to files, and a page.
func TestHostKinds_areComplete(t *testing.T) {
	t.Parallel()
	var schema struct {
		Definitions struct {
			Connection struct {
				Properties struct{ Type struct{ Enum []string } }
			}
		}
	}
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}

	rows := map[string]Kind{}
	for _, k := range kinds {
		if k.Product == "" || k.Open == nil || k.Credential == nil || k.Hook.signed.whole == nil || k.Hook.Steps == "" {
			t.Errorf("the row of %s is not whole", k.Name)
		}
		rows[string(k.Name)] = k
	}
	tried := map[string]bool{}
	for _, st := range deploymentTests() {
		tried[string(st.conn("https://h.example", wanted{}).Kind())] = true
	}

	kinds := schema.Definitions.Connection.Properties.Type.Enum
	if len(kinds) < 7 || len(rows) != len(kinds) {
		t.Errorf("%d rows of %d kinds", len(rows), len(kinds))
	}
	for _, kind := range kinds {
		if _, ok := rows[kind]; !ok {
			t.Errorf("%s has no row", kind)
		}
		if kind == string(config.KindGit) {
			continue // any server: nothing to list, and no page of its own
		}
		if !tried[kind] {
			t.Errorf("no deployment of %s is in the table of conformance", kind)
		}
		if _, err := os.Stat(filepath.Join("..", "..", "docs", "hosts", kind+".md")); err != nil {
			t.Errorf("%s has no page: %v", kind, err)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(filePages)), func(of string) bool { return strings.HasPrefix(of, kind) }) {
			t.Errorf("files of %s have no links", kind)
		}
	}
}

// What a host announces of the credential is available for the status.
func TestRateLimitStatus_isReadForEachKindOfHost(t *testing.T) {
	t.Parallel()
	token := &config.Token{Env: "T"}
	limits := "RateLimit-Limit: 600\nRateLimit-Remaining: 590\nRateLimit-Reset: 1772370000\n"
	for name, c := range map[string]struct {
		answers map[string]string
		conn    func(url string) config.Connection
		want    Allowance
	}{
		"github": {
			map[string]string{"/api/v3/orgs/acme/repos": "STATUS 200\ngithub-authentication-token-expiration: 2026-03-05 10:00:00 UTC\nX-" + strings.ReplaceAll(limits, "\nRate", "\nX-Rate") + "\n[]"},
			func(url string) config.Connection {
				return &config.GitHub{Token: token, URL: url, Orgs: []string{"acme"}}
			},
			Allowance{Calls: 1, Limit: 600, Remaining: 590, Reset: time.Unix(1772370000, 0), Expires: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)},
		},
		"gitlab": {
			map[string]string{"/api/v4/groups/acme/projects": "STATUS 200\n" + limits + "\n[]", "/api/v4/personal_access_tokens/self": `{"expires_at":"2026-03-05"}`},
			func(url string) config.Connection {
				return &config.GitLab{Token: token, URL: url, Groups: []string{"acme"}}
			},
			Allowance{Calls: 2, Limit: 600, Remaining: 590, Reset: time.Unix(1772370000, 0), Expires: time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)},
		},
		"a token of gitlab that has no page": {
			map[string]string{"/api/v4/groups/acme/projects": "[]"},
			func(url string) config.Connection {
				return &config.GitLab{Token: token, URL: url, Groups: []string{"acme"}}
			},
			Allowance{Calls: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openTest(t, c.conn(answering(t, "Bearer sekret", c.answers).URL))
			if err := h.List(t.Context(), &recorder{}); err != nil {
				t.Fatal(err)
			}
			if got := h.(Metered).Allowance(); got.Calls != c.want.Calls || got.Limit != c.want.Limit || got.Remaining != c.want.Remaining || !got.Reset.Equal(c.want.Reset) || !got.Expires.Equal(c.want.Expires) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestExplainGitHub_saysWhyTheHostRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, code, text string }{
		"single sign-on":      {"STATUS 403\nX-GitHub-SSO: required; url=https://github.com/orgs/acme/sso?x=1\n\n{}", "SSO_REQUIRED@orgs/acme!", "https://github.com/orgs/acme/sso?x=1"},
		"a permission":        {"STATUS 403\nX-Accepted-GitHub-Permissions: contents=read\n\n{\"message\":\"Resource not accessible by personal access token\"}", "SCOPE_MISSING@orgs/acme!", "contents=read"},
		"left out in part":    {"STATUS 200\nX-GitHub-SSO: partial-results; organizations=21955855\n\n[]", "SSO_REQUIRED!", "21955855"},
		"a secondary limit":   {"STATUS 403\n\n{\"message\":\"You have exceeded a secondary rate limit\"}", "RATE_LIMITED@orgs/acme!", "fewer calls"},
		"the hour is used up": {"STATUS 403\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1772370000\n\n{}", "RATE_LIMITED@orgs/acme!", "goes on at 13:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answering(t, "Bearer sekret", map[string]string{"/api/v3/orgs/acme/repos": c.answer, "/api/v3/repos/x/y": `{"id":9,"full_name":"x/y"}`})
			var rec recorder
			conn := &config.GitHub{Token: &config.Token{Env: "T"}, URL: s.URL, Orgs: []string{"acme"}}
			err := openTest(t, conn).List(t.Context(), &rec)
			texts := fmt.Sprint(err)
			for _, i := range rec.issues {
				texts += " " + i.Text
			}
			if !strings.Contains(rec.problems(), c.code) || !strings.Contains(texts, c.text) {
				t.Errorf("issues %s: %s", rec.problems(), texts)
			}
		})
	}
}

// GitLab returns sizes if asked for them with a token, but not for a group.
func TestGitLab_returnsSizesOnlyWithAToken(t *testing.T) {
	t.Parallel()
	repos := []hosttest.Repo{{ID: 1, Owner: "acme", Name: "app", Branch: "main", Size: 7000}, {ID: 2, Owner: "ann", Name: "own", Branch: "main", Size: 9000}}
	for name, c := range map[string]struct {
		conn config.GitLab
		want string
	}{
		"everything": {config.GitLab{All: true, Token: standToken}, "7000 9000"},
		"a user":     {config.GitLab{Users: []string{"ann"}, Token: standToken}, "9000"},
		"a project":  {config.GitLab{Projects: []string{"acme/app"}, Token: standToken}, "7000"},
		"a group":    {config.GitLab{Groups: []string{"acme"}, Token: standToken}, "0"},
		"no token":   {config.GitLab{Projects: []string{"acme/app"}}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hosttest.Start(t, hosttest.GitLab(), repos...)
			if c.conn.Token == nil {
				s.Do(func(s *hosttest.State) { *s.Token = "" })
			}
			c.conn.URL = s.URL
			h, err := Open(&c.conn, tools(t))
			if err != nil {
				t.Fatal(err)
			}
			rec := &recorder{}
			err = h.List(t.Context(), rec)
			var sizes []string
			for _, r := range rec.repos {
				sizes = append(sizes, fmt.Sprint(r.SizeBytes))
			}
			slices.Sort(sizes)
			if got := strings.Join(sizes, " "); err != nil || got != c.want {
				t.Errorf("sizes %s, want %s: %v", got, c.want, err)
			}
		})
	}
}

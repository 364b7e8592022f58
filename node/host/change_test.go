package host

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Changed reads few pages, newest first, back to the last look.
func TestChangedRepositories_areFoundForEachKindOfHost(t *testing.T) {
	t.Parallel()
	token := &config.Token{Env: "T"}
	since := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		auth    string
		answers map[string]string
		conn    func(url string) config.Connection
		want    string // ids and marks
		targets string
		calls   int
	}{
		"github": {
			auth: "Bearer sekret",
			answers: map[string]string{
				"/api/v3/orgs/acme/repos?sort=pushed&direction=desc&page=1": "STATUS 200\nLink: <HOST/api/v3/organizations/9/repos?page=2>; rel=\"next\"\n\n" +
					`[{"id":1,"pushed_at":"2026-03-01T11:59:00Z"},{"id":2,"pushed_at":"2026-03-01T11:58:00Z"}]`,
				"/api/v3/organizations/9/repos?page=2":          `[{"id":3,"pushed_at":"2026-03-01T11:00:00Z"},{"id":4,"pushed_at":"2026-03-01T10:59:59Z"},{"id":5,"pushed_at":null}]`,
				"/api/v3/users/ann/repos?sort=pushed&page=1":    `[]`,
				"/api/v3/user/repos?sort=pushed&direction=desc": `[{"id":6,"pushed_at":"2026-03-01T11:30:00Z","private":true}]`,
			},
			conn: func(url string) config.Connection {
				return &config.GitHub{Token: token, URL: url, Orgs: []string{"acme", "gone"}, Users: []string{"ann"}, Repos: []string{"x/y"}}
			},
			want: "github:HOST:1 11:59 github:HOST:2 11:58 github:HOST:3 11:00 github:HOST:6 11:30", targets: "orgs/acme users/ann", calls: 6,
		},
		"gitlab": {
			auth: "Bearer sekret",
			answers: map[string]string{
				"/api/v4/groups/a%2Fb/projects?order_by=last_activity_at&sort=desc&include_subgroups=true": `[{"id":1,"last_activity_at":"2026-03-01T11:59:00.123Z"},{"id":2,"last_activity_at":"2026-02-01T11:59:00Z"}]`,
				"/api/v4/users/ann/projects?order_by=last_activity_at":                                     `[]`,
			},
			conn: func(url string) config.Connection {
				return &config.GitLab{Token: token, URL: url, Groups: []string{"a/b"}, Users: []string{"ann"}, Projects: []string{"x/y"}}
			},
			want: "gitlab:HOST:1 11:59", targets: "groups/a/b users/ann", calls: 2,
		},
		"gitea": {
			auth: "token sekret",
			answers: map[string]string{
				"/api/v1/orgs/acme": `{"id":7,"username":"acme"}`,
				"/api/v1/users/ann": `{"id":8,"login":"ann"}`,
				"/api/v1/repos/search?uid=7&exclusive=true&sort=updated&order=desc&page=1": "STATUS 200\nX-Total-Count: 3\nLink: <http://inside/x?uid=7&exclusive=true&sort=updated&order=desc&page=2>; rel=\"next\"\n\n" +
					`{"ok":true,"data":[{"id":1,"updated_at":"2026-03-01T12:59:00+01:00"}]}`,
				"/api/v1/repos/search?uid=7&page=2": `{"ok":true,"data":[{"id":2,"updated_at":"2026-03-01T10:00:00Z"}]}`,
				"/api/v1/repos/search?uid=8":        "STATUS 200\nX-Total-Count: 0\n\n" + `{"ok":true,"data":[]}`,
			},
			conn: func(url string) config.Connection {
				return &config.Gitea{Token: token, URL: url, Orgs: []string{"acme"}, Users: []string{"ann"}, Repos: []string{"x/y"}}
			},
			want: "gitea:HOST:1 11:59", targets: "orgs/acme users/ann", calls: 5,
		},
		"bitbucket cloud": {
			auth: basicOf("ann@example.com", "sekret"),
			answers: map[string]string{
				"/2.0/repositories/ws?sort=-updated_on&q=updated_on>2026-03-01T11:00:00%2B00:00": `{"next":"HOST/2.0/repositories/ws?page=2","values":[{"uuid":"{1}","updated_on":"2026-03-01T11:59:00Z"}]}`,
				"/2.0/repositories/ws?page=2": `{"values":[{"uuid":"{2}","updated_on":"2026-03-01T11:58:00Z"}]}`,
				"/2.0/repositories/other?q=project.key%3D%22KEY%22%20AND%20updated_on>2026-03-01T11:00:00%2B00:00&page=": `{"values":[]}`,
			},
			conn: func(url string) config.Connection {
				return &config.Bitbucket{Token: token, User: "ann@example.com", URL: url + "/2.0", Workspaces: []string{"ws"}, Projects: []string{"other/KEY"}}
			},
			want: "bitbucket:HOST:ws/{1} 11:59 bitbucket:HOST:ws/{2} 11:58", targets: "projects/other/KEY workspaces/ws", calls: 3,
		},
		"gerrit": {
			answers: map[string]string{
				"/projects/?b=master&S=0&n=500": ")]}'\n" + `{"app":{"branches":{"main":"----------------------------------------","master":"0123456789012345678901234567890123456789"}},"none":{"branches":{}}}`,
				"/projects/?S=2":                ")]}'\n{}",
			},
			conn: func(url string) config.Connection { return &config.Gerrit{URL: url} },
			want: "gerrit:HOST:app 0123456789012345678901234567890123456789", targets: "projects", calls: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answering(t, c.auth, unescaped(c.answers))
			h := openTest(t, c.conn(s.URL))
			var got []string
			targets, err := h.(Changer).Changed(t.Context(), since, func(m Mark) {
				mark := m.At.UTC().Format("15:04")
				if len(m.Commits) > 0 {
					mark = strings.Join(m.Commits, ",")
				}
				got = append(got, m.ExternalID+" "+mark)
			})
			if err != nil {
				t.Fatalf("%v; not known: %q", err, s.unknown)
			}
			slices.Sort(got)
			slices.Sort(targets)
			host := strings.TrimPrefix(s.URL, "http://")
			if text := strings.Join(got, " "); text != strings.ReplaceAll(c.want, "HOST", host) || strings.Join(targets, " ") != c.targets {
				t.Errorf("marks %s\n want %s\ntargets %s, want %s; not known: %q", text, c.want, targets, c.targets, s.unknown)
			}
			if s.calls != c.calls {
				t.Errorf("%d calls, want %d", s.calls, c.calls)
			}
		})
	}
}

// unescaped returns answers whose keys have unescaped queries.
func unescaped(answers map[string]string) map[string]string {
	out := map[string]string{}
	for key, answer := range answers {
		path, query, _ := strings.Cut(key, "?")
		out[path+"?"+strings.NewReplacer("%2B", "+", "%20", " ", "%22", `"`, "%3D", "=").Replace(query)] = answer
	}
	return out
}

// A request for an unchanged page sends its version, so that GitHub does not count it. The cached
// answer also leads to later pages, which a look that failed had not read.
func TestChangedRepositories_anUnchangedPageDoesNotEndTheList(t *testing.T) {
	t.Parallel()
	sent, same, fails := 0, 0, true
	s := newGiteaServer(t)
	s.fault = func(w http.ResponseWriter, r *http.Request) bool {
		page := r.URL.Query().Get("page")
		tag := `W/"v` + page + `"`
		if page == "2" && fails {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			same++
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		sent++
		w.Header().Set("Content-Type", "application/json")
		if page == "1" {
			w.Header().Set("Link", `<`+s.URL+`/api/v3/organizations/9/repos?page=2>; rel="next"`)
		}
		fmt.Fprintf(w, `[{"id":%s,"pushed_at":"2026-03-01T11:59:00Z"}]`, page)
		return true
	}

	tools := tools(t)
	tools.Answers = NewAnswers(t.TempDir())
	h, err := Open(&config.GitHub{Token: &config.Token{Env: "T"}, URL: s.URL, Orgs: []string{"acme"}}, tools)
	if err != nil {
		t.Fatal(err)
	}
	look := func() (marks []string, err error) {
		_, err = h.(Changer).Changed(t.Context(), time.Time{}, func(m Mark) { marks = append(marks, m.ExternalID[strings.LastIndex(m.ExternalID, ":")+1:]) })
		return marks, err
	}
	if marks, err := look(); err == nil || len(marks) != 1 {
		t.Fatalf("a look whose second page fails: %v, %v", marks, err)
	}
	fails = false
	for range 3 {
		if marks, err := look(); err != nil || !slices.Equal(marks, []string{"1", "2"}) {
			t.Fatalf("%v, %v", marks, err)
		}
	}
	if sent != 2 || same != 5 {
		t.Errorf("%d pages were sent and %d were as they were, want 2 and 5", sent, same)
	}
}

// Looks for pushes leave most of the limit to others.
func TestChangedRepositories_useAQuarterOfTheRateLimit(t *testing.T) {
	t.Parallel()
	told := Allowance{Limit: 5000, Reset: time.Unix(1, 0)}
	for _, c := range []struct {
		signal Signal
		calls  int
		told   Allowance
		want   time.Duration
	}{
		{githubSignal, 1, told, 30 * time.Second},
		{githubSignal, 100, told, 288 * time.Second},
		{bitbucketSignal, 10, Allowance{}, 144 * time.Second},
		{gerritSignal, 20, Allowance{}, 10 * time.Minute},
		{gerritSignal, 500, Allowance{}, 15 * time.Minute},
	} {
		if got := c.signal.Every(c.calls, c.told); got != c.want {
			t.Errorf("%s, %d calls: each %v, want %v", c.signal.Name, c.calls, got, c.want)
		}
	}
}

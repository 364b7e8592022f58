package host

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// audience returns a server with answers by path and query, in which {base} is its address. Other
// paths are not found.
func audience(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.RequestURI()]
		if !ok {
			answer = "404 {}"
		}
		answer = strings.ReplaceAll(answer, "{base}", s.URL)
		w.Header().Set("Content-Type", "application/json")
		if link, rest, linked := strings.Cut(answer, " | "); linked {
			w.Header().Set("Link", "<"+link+`>; rel="next"`)
			answer = rest
		}
		var status int
		if n, _ := fmt.Sscanf(answer, "%d ", &status); n == 1 {
			w.WriteHeader(status)
			answer = answer[4:]
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// connectionTo parses a connection.
func connectionTo(t *testing.T, text string) config.Connection {
	t.Helper()
	f, err := config.Parse([]byte(`{"connections": {"c": ` + text + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return f.Connections[0]
}

// Each host is called as its API is documented. Levels, states and pages are respected.
func TestRepositoryReaders_areReadForEachKindOfHost(t *testing.T) {
	t.Parallel()
	const collaborators = "/api/v3/repositories/7/collaborators?affiliation=all&per_page=100"
	rows := []struct {
		name, connection, id, path string
		answers                    map[string]string
		want                       string
	}{
		{"GitHub, in pages", `{"type": "github", "url": "{base}", "token": {"env": "T"}, "orgs": ["acme"]}`, "7", "acme/app", map[string]string{
			collaborators:             `{base}` + collaborators + `&page=2 | [{"id": 3, "login": "ann", "permissions": {"pull": true}}, {"id": 4, "permissions": {"pull": false}}]`,
			collaborators + "&page=2": `[{"id": 12, "login": "ben", "permissions": {"pull": true, "push": true}}]`,
		}, "12 3"},
		{"GitLab, from Reporter on", `{"type": "gitlab", "url": "{base}", "token": {"env": "T"}, "groups": ["acme"]}`, "7", "", map[string]string{
			"/api/v4/projects/7/members/all?page=1&per_page=100": `{base}/api/v4/projects/7/members/all?page=2&per_page=100 | [{"id": 1, "state": "active", "access_level": 10}, {"id": 2, "state": "active", "access_level": 20}]`,
			"/api/v4/projects/7/members/all?page=2&per_page=100": `[{"id": 3, "state": "blocked", "access_level": 50}, {"id": 4, "state": "active", "access_level": 50}]`,
		}, "2 4"},
		{"Gitea, collaborators, teams and owner", `{"type": "gitea", "url": "{base}", "token": {"env": "T"}, "orgs": ["acme"]}`, "7", "", map[string]string{
			"/api/v1/repositories/7":                               `{"id": 7, "name": "app", "full_name": "acme/app", "owner": {"id": 50}}`,
			"/api/v1/repos/acme/app/collaborators?limit=50&page=1": `[{"id": 1}, {"id": 2, "prohibit_login": true}]`,
			"/api/v1/repos/acme/app/collaborators?limit=50&page=2": `[]`,
			"/api/v1/repos/acme/app/teams":                         `[{"id": 9, "permission": "read", "units_map": {"repo.code": "read"}}, {"id": 10, "permission": "read", "units_map": {"repo.code": "none", "repo.issues": "read"}}, {"id": 11, "permission": "owner"}]`,
			"/api/v1/teams/9/members?limit=50&page=1":              `[{"id": 3}]`,
			"/api/v1/teams/9/members?limit=50&page=2":              `[]`,
			"/api/v1/teams/11/members?limit=50&page=1":             `[{"id": 4}]`,
			"/api/v1/teams/11/members?limit=50&page=2":             `[]`,
		}, "1 3 4 50"},
		{"Gitea, of a user", `{"type": "gitea", "url": "{base}", "token": {"env": "T"}, "users": ["dan"]}`, "7", "", map[string]string{
			"/api/v1/repositories/7":                              `{"id": 7, "name": "own", "full_name": "dan/own", "owner": {"id": 5}}`,
			"/api/v1/repos/dan/own/collaborators?limit=50&page=1": `[]`,
			"/api/v1/repos/dan/own/teams":                         `405 {"message": "repo is not owned by an organization"}`,
			"/api/v1/users/dan":                                   `{"id": 5, "prohibit_login": false}`,
		}, "5"},
		{"Gitea, of a user who is blocked", `{"type": "gitea", "url": "{base}", "token": {"env": "T"}, "users": ["dan"]}`, "7", "", map[string]string{
			"/api/v1/repositories/7":                              `{"id": 7, "name": "own", "full_name": "dan/own", "owner": {"id": 5}}`,
			"/api/v1/repos/dan/own/collaborators?limit=50&page=1": `[]`,
			"/api/v1/repos/dan/own/teams":                         `405 {"message": "repo is not owned by an organization"}`,
			"/api/v1/users/dan":                                   `{"id": 5, "prohibit_login": true}`,
		}, ""},
		{"Bitbucket Data Center", `{"type": "bitbucket", "deploymentType": "server", "url": "{base}", "user": "u", "token": {"env": "T"}, "all": true}`, "7", "ACME/app", map[string]string{
			"/rest/api/1.0/projects/ACME/repos/app":                                      `{"id": 7, "slug": "app", "project": {"key": "ACME"}}`,
			"/rest/api/1.0/projects/ACME/repos/app/permissions/users?limit=1000":         `{"values": [{"user": {"id": 1, "active": true}, "permission": "REPO_READ"}], "isLastPage": false, "nextPageStart": 1}`,
			"/rest/api/1.0/projects/ACME/repos/app/permissions/users?limit=1000&start=1": `{"values": [{"user": {"id": 2, "active": false}, "permission": "REPO_ADMIN"}], "isLastPage": true}`,
		}, "1"},
	}
	for _, row := range rows {
		s := audience(t, row.answers)
		conn := connectionTo(t, strings.ReplaceAll(row.connection, "{base}", s.URL))
		h, err := Open(conn, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		id := string(conn.Kind()) + ":" + strings.TrimPrefix(s.URL, "http://") + ":" + row.id
		got, err := h.(Audience).Readers(t.Context(), id, row.path)
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%s: %v, %v; want %s", row.name, got, err, row.want)
		}
	}
}

// If a page fails, there are no readers at all.
func TestRepositoryReaders_areNoneIfAPageFails(t *testing.T) {
	t.Parallel()
	const first = "/api/v3/repositories/7/collaborators?affiliation=all&per_page=100"
	for name, answers := range map[string]map[string]string{
		"the second page fails":     {first: "{base}" + first + `&page=2 | [{"id": 3, "permissions": {"pull": true}}]`, first + "&page=2": `500 {}`},
		"the token lacks the right": {first: `403 {"message": "Must have push access to view repository collaborators."}`},
		"the token is refused":      {first: `401 {"message": "Bad credentials"}`},
		"it is not there":           {},
	} {
		s := audience(t, answers)
		h, err := Open(connectionTo(t, `{"type": "github", "url": "`+s.URL+`", "token": {"env": "T"}, "orgs": ["acme"]}`), tools(t))
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.(Audience).Readers(t.Context(), "github:"+strings.TrimPrefix(s.URL, "http://")+":7", "acme/app")
		if r := (*Refusal)(nil); !errors.As(err, &r) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If the path now belongs to another repository, its readers do not count.
func TestRepositoryReaders_ofAReplacedRepositoryAreAnError(t *testing.T) {
	t.Parallel()
	s := audience(t, map[string]string{"/rest/api/1.0/projects/ACME/repos/app": `{"id": 8, "slug": "app", "project": {"key": "ACME"}}`})
	h, err := Open(connectionTo(t, `{"type": "bitbucket", "deploymentType": "server", "url": "`+s.URL+`", "user": "u", "token": {"env": "T"}, "all": true}`), tools(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.(Audience).Readers(t.Context(), "bitbucket:"+strings.TrimPrefix(s.URL, "http://")+":7", "ACME/app")
	if err == nil {
		t.Errorf("it has the readers %v", got)
	}
}

// Each kind whose row has a Readership implements Audience.
func TestHostKinds_thatReportReadersImplementAudience(t *testing.T) {
	t.Parallel()
	for kind, text := range map[config.Kind]string{
		config.KindGitHub: `{"type": "github", "orgs": ["a"]}`, config.KindGitLab: `{"type": "gitlab", "groups": ["a"]}`, config.KindGitea: `{"type": "gitea", "orgs": ["a"]}`,
		config.KindBitbucket:   `{"type": "bitbucket", "deploymentType": "cloud", "user": "u", "token": {"env": "T"}, "workspaces": ["a"]}`,
		config.KindAzureDevOps: `{"type": "azuredevops", "deploymentType": "cloud", "token": {"env": "T"}, "orgs": ["a"]}`,
		config.KindGerrit:      `{"type": "gerrit", "url": "https://g.example.com"}`, config.KindGit: `{"type": "git", "url": "https://g.example.com/a"}`,
	} {
		conn := connectionTo(t, text)
		h, err := Open(conn, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		_, tells := h.(Audience)
		if want := ReadershipOf(conn) != Untold; conn.Kind() != kind || tells != want {
			t.Errorf("%s: an audience %t, by its row %t", kind, tells, want)
		}
	}
	if ReadershipOf(nil) != Untold {
		t.Error("a connection that is not there tells of readers")
	}
}

// Events about members are decoded for hosts that have them.
func TestWebhook_decodesMemberEvents(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		hook         Hook
		header, name string
		body         string
		want         string // paths and owner
	}{
		{hookGitHub, "X-GitHub-Event", "member", `{"action": "removed", "repository": {"full_name": "acme/app"}}`, "acme/app "},
		{hookGitHub, "X-GitHub-Event", "membership", `{"action": "removed", "organization": {"login": "acme"}}`, " acme"},
		{hookGitLab, "X-Gitlab-Event", "System Hook", `{"event_name": "user_remove_from_team", "project_path_with_namespace": "acme/app"}`, "acme/app "},
		{hookGitLab, "X-Gitlab-Event", "Member Hook", `{"event_name": "user_remove_from_group", "group_path": "acme"}`, " acme"},
	} {
		d := Delivery{Header: http.Header{http.CanonicalHeaderKey(row.header): {row.name}}.Get, Query: func(string) string { return "" }, Body: []byte(row.body)}
		e, err := row.hook.Read(d)
		if got := strings.Join(e.Paths, " ") + " " + e.Owner; err != nil || !e.Members || e.Pushed || got != row.want {
			t.Errorf("%s %s: %+v, %v", row.name, row.body, e, err)
		}
	}
}

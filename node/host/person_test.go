package host

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Each host is called with a person's token as its API is documented. In answers, {site} is the
// server without its scheme.
func TestReadableRepositories_areReadForEachKindOfHost(t *testing.T) {
	t.Parallel()
	const github = "/api/v3/user/repos?affiliation=owner%2Ccollaborator%2Corganization_member&per_page=100&visibility=private"
	const gitlab = "/api/v4/projects?min_access_level=20&order_by=id&pagination=keyset&per_page=100&simple=true&sort=asc&visibility=private"
	const cloud = "?fields=next%2Cvalues.uuid&pagelen=100&q=is_private%3Dtrue&role=member"
	const server = "/rest/api/1.0/repos?archived=ALL&limit=1000&permission=REPO_READ&visibility=private"
	rows := []struct {
		name    string
		open    OpenOwn
		answers map[string]string
		want    string
	}{
		{"GitHub, in pages", GitHubOwn, map[string]string{
			github:             `{base}` + github + `&page=2 | [{"id": 9, "permissions": {"pull": true}}, {"id": 4, "permissions": {"pull": false}}]`,
			github + "&page=2": `[{"id": 7, "permissions": {"pull": true, "push": true}}, {"id": 9, "permissions": {"pull": true}}]`,
		}, "github:{site}:7 github:{site}:9"},
		{"GitLab, by keys", GitLabOwn, map[string]string{
			gitlab:                 `{base}` + gitlab + `&id_after=2 | [{"id": 2}]`,
			gitlab + "&id_after=2": `[{"id": 30}]`,
		}, "gitlab:{site}:2 gitlab:{site}:30"},
		{"Gitea, what is private and whose code is read", GiteaOwn, map[string]string{
			"/api/v1/user/repos?limit=50&page=1": `[{"id": 1, "private": true, "permissions": {"pull": true}}, {"id": 2, "private": false, "permissions": {"pull": true}}]`,
			"/api/v1/user/repos?limit=50&page=2": `[{"id": 3, "private": true, "permissions": {"pull": false}}]`,
			"/api/v1/user/repos?limit=50&page=3": `[]`,
		}, "gitea:{site}:1"},
		{"Bitbucket Cloud, workspace by workspace", BitbucketCloudOwn, map[string]string{
			"/user/workspaces?pagelen=100": `{"values": [{"workspace": {"slug": "acme"}}], "next": "{base}/user/workspaces?page=2"}`,
			"/user/workspaces?page=2":      `{"values": [{"workspace": {"slug": "zoo"}}]}`,
			"/repositories/acme" + cloud:   `{"values": [{"uuid": "{a}"}], "next": "{base}/repositories/acme?page=2"}`,
			"/repositories/acme?page=2":    `{"values": [{"uuid": "{b}"}]}`,
			"/repositories/zoo" + cloud:    `{"values": []}`,
		}, "bitbucket:{site}:acme/{a} bitbucket:{site}:acme/{b}"},
		{"Bitbucket Data Center", BitbucketServerOwn, map[string]string{
			server: `{"values": [{"id": 1, "slug": "a", "project": {"key": "P"}}], "isLastPage": false, "nextPageStart": 1}`,
			strings.Replace(server, "&vis", "&start=1&vis", 1): `{"values": [{"id": 2, "slug": "b", "project": {"key": "P"}}], "isLastPage": true}`,
		}, "bitbucket:{site}:1 bitbucket:{site}:2"},
		{"Azure DevOps, by organisations", AzureDevOpsOwn, map[string]string{
			"/acme/_apis/git/repositories?api-version=7.1": `{"value": [{"id": "g1", "name": "a", "project": {"name": "P", "visibility": "private"}}, {"id": "g2", "name": "b", "project": {"name": "O", "visibility": "public"}}]}`,
			"/zoo/_apis/git/repositories?api-version=7.1":  `{"value": [{"id": "g3", "name": "a", "project": {"name": "P", "visibility": "organization"}}]}`,
		}, "azuredevops:{site}:acme/g1 azuredevops:{site}:zoo/g3"},
		{"Gerrit, in pages", GerritOwn, map[string]string{
			"/a/projects/?S=0&all=&d=&n=500": ")]}'\n" + `{"kernel/common": {"state": "ACTIVE"}, "tools": {"state": "HIDDEN"}}`,
			"/a/projects/?S=2&all=&d=&n=500": ")]}'\n" + `{"vendor": {"state": "READ_ONLY"}}`,
			"/a/projects/?S=3&all=&d=&n=500": ")]}'\n{}",
		}, "gerrit:{site}:kernel/common gerrit:{site}:tools gerrit:{site}:vendor"},
	}
	for _, row := range rows {
		s := audience(t, row.answers)
		own, err := row.open(Person{Address: s.URL, Subject: "5", Token: "sekret", User: "ann", Within: []string{"acme", "zoo"}}, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		got, withheld, err := Readable(t.Context(), own)
		want := strings.ReplaceAll(row.want, "{site}", strings.TrimPrefix(s.URL, "http://"))
		if err != nil || withheld != "" || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %q, %v; want %s", row.name, got, withheld, err, want)
		}
	}
}

// personHost returns a server with the same answer for all paths.
func personHost(t *testing.T, status int, head map[string]string, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer sekret" && got != basicOf("", "sekret") && got != basicOf("ann", "sekret") {
			t.Errorf("asked with %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		for name, value := range head {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// The host says whose the token is. An answer without a person means that the token is not valid.
func TestTokenOwner_isReadForEachKindOfHost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		open OpenOwn
		head map[string]string
		body string
		want string // subject, or code of the refusal
	}{
		{"GitHub", GitHubOwn, nil, `{"id": 12, "login": "ann"}`, "12"},
		{"GitHub, nobody", GitHubOwn, nil, `{}`, "INVALID_PROVIDER_RESPONSE"},
		{"GitLab", GitLabOwn, nil, `{"id": 13}`, "13"},
		{"Gitea", GiteaOwn, nil, `{"id": 14}`, "14"},
		{"Bitbucket Cloud", BitbucketCloudOwn, nil, `{"uuid": "{x}"}`, "{x}"},
		{"Bitbucket Data Center", BitbucketServerOwn, map[string]string{"X-AUSERID": "15"}, `{"values": []}`, "15"},
		{"Azure DevOps", AzureDevOpsOwn, nil, `{"authenticatedUser": {"id": "7", "subjectDescriptor": "aad.eA"}}`, "aad.eA"},
		{"Azure DevOps, nobody in particular", AzureDevOpsOwn, nil, `{"authenticatedUser": {"id": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "subjectDescriptor": "aad.eA"}}`, "TOKEN_REFUSED"},
		{"Azure DevOps, a server that is too old", AzureDevOpsOwn, nil, `{"authenticatedUser": {"id": "7"}}`, "INVALID_PROVIDER_RESPONSE"},
		{"Gerrit", GerritOwn, nil, ")]}'\n" + `{"_account_id": 16, "username": "ann"}`, "16"},
		{"Gerrit, nobody", GerritOwn, nil, ")]}'\n{}", "INVALID_PROVIDER_RESPONSE"},
		{"Bitbucket Data Center, nobody in particular", BitbucketServerOwn, nil, `{"values": []}`, "TOKEN_REFUSED"},
	} {
		own, err := row.open(Person{Address: personHost(t, http.StatusOK, row.head, row.body).URL, Subject: "5", Token: "sekret", User: "ann", Within: []string{"acme"}}, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		got, err := own.Who(t.Context())
		if r := (*Refusal)(nil); errors.As(err, &r) {
			got = string(r.Code)
		}
		if got != row.want {
			t.Errorf("%s: %q, %v; want %s", row.name, got, err, row.want)
		}
	}
}

// Refusals mean something about the person, the token, or neither.
func TestPersonRefusal_isToldApartFromTokenRefusal(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		open    OpenOwn
		status  int
		head    map[string]string
		body    string
		code    Code
		refuses bool
	}{
		{"revoked", GitHubOwn, 401, nil, `{"message": "Bad credentials"}`, TokenRefused, true},
		{"suspended at GitHub", GitHubOwn, 403, nil, `{"message": "Sorry. Your account was suspended."}`, AccountBlocked, true},
		{"blocked at GitLab", GitLabOwn, 403, nil, `{"message": "403 Forbidden - Your account has been blocked."}`, AccountBlocked, true},
		{"prohibited at Gitea", GiteaOwn, 403, nil, `{"message": "This user is prohibited from signing in, please contact your site administrator."}`, AccountBlocked, true},
		{"scope, GitLab", GitLabOwn, 403, nil, `{"error": "insufficient_scope", "scope": "read_api"}`, ScopeMissing, true},
		{"scope, Gitea", GiteaOwn, 403, nil, `{"message": "token does not have at least one of required scope(s): [read:repository]"}`, ScopeMissing, true},
		{"scope, GitHub, which says nothing", GitHubOwn, 200, map[string]string{"X-OAuth-Scopes": "read:user, user:email"}, `[]`, ScopeMissing, true},
		{"limit", GitHubOwn, 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4000000000"}, `{"message": "API rate limit exceeded"}`, RateLimited, false},
		{"too many", GitLabOwn, 429, nil, `{}`, RateLimited, false},
		{"a proxy", GitLabOwn, 403, map[string]string{"Content-Type": "text/html"}, `<h1>Your address is blocked</h1>`, Forbidden, false},
		{"403 of no known meaning", GiteaOwn, 403, nil, `{"message": "no"}`, Forbidden, false},
		{"revoked at Azure DevOps", AzureDevOpsOwn, 401, nil, `{}`, TokenRefused, true},
		{"Azure DevOps shows a page to sign in", AzureDevOpsOwn, 203, map[string]string{"Content-Type": "text/html"}, `<h1>Sign in</h1>`, TokenRefused, true},
		{"Azure DevOps is down", AzureDevOpsOwn, 503, nil, `{}`, Unreachable, false},
		{"a wrong password at Gerrit", GerritOwn, 401, map[string]string{"Content-Type": "text/plain"}, `Unauthorized`, TokenRefused, true},
		{"Gerrit is down", GerritOwn, 500, nil, `oops`, Unreachable, false},
		{"a retired list", BitbucketCloudOwn, 410, nil, `{}`, InvalidResponse, false},
		{"down", GiteaOwn, 502, nil, `{}`, Unreachable, false},
	} {
		own, err := row.open(Person{Address: personHost(t, row.status, row.head, row.body).URL, Subject: "5", Token: "sekret", User: "ann", Within: []string{"acme"}}, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		ids, _, err := Readable(t.Context(), own)
		r := (*Refusal)(nil)
		if !errors.As(err, &r) || r.Code != row.code || r.RefusesPerson() != row.refuses || len(ids) > 0 {
			t.Errorf("%s: %v and %v, want %s", row.name, ids, err, row.code)
		}
		if err != nil && strings.Contains(err.Error(), "connection") {
			t.Errorf("%s: a person is told of a connection: %v", row.name, err)
		}
	}
}

// If organisations withhold repositories, the others still count, and a sentence says so.
func TestReadableRepositories_reportOrganisationsThatWithholdAccess(t *testing.T) {
	t.Parallel()
	s := personHost(t, http.StatusOK, map[string]string{"X-GitHub-SSO": "partial-results; organizations=21955855,20582480"}, `[{"id": 7, "permissions": {"pull": true}}]`)
	own, err := GitHubOwn(Person{Address: s.URL, Subject: "5", Token: "sekret"}, tools(t))
	if err != nil {
		t.Fatal(err)
	}
	if ids, withheld, err := Readable(t.Context(), own); len(ids) != 1 || !strings.Contains(withheld, "single sign-on") || err != nil {
		t.Errorf("%v, %q, %v", ids, withheld, err)
	}
}

// If a page fails, there is no list at all.
func TestReadableRepositories_areNoneIfAPageFails(t *testing.T) {
	t.Parallel()
	s := audience(t, map[string]string{
		"/api/v1/user/repos?limit=50&page=1": `[{"id": 1, "private": true, "permissions": {"pull": true}}]`,
		"/api/v1/user/repos?limit=50&page=2": `403 {"message": "no"}`,
	})
	own, err := GiteaOwn(Person{Address: s.URL, Subject: "5", Token: "sekret"}, tools(t))
	if err != nil {
		t.Fatal(err)
	}
	if ids, _, err := Readable(t.Context(), own); err == nil || len(ids) > 0 {
		t.Errorf("%v, %v", ids, err)
	}
}

// An organisation that refuses the person is left out. If all refuse, or one fails, there is no
// list.
func TestAzureReadableRepositories_leaveOutOrganisationsThatRefuse(t *testing.T) {
	t.Parallel()
	const of, good = "/_apis/git/repositories?api-version=7.1", `{"value": [{"id": "g", "name": "a", "project": {"name": "P", "visibility": "private"}}]}`
	for _, c := range []struct {
		acme, zoo string
		ids       int
		withheld  string
		code      Code // of the refusal
	}{
		{good, good, 2, "", ""},
		{good, "401 {}", 1, "zoo", ""},
		{"401 {}", "401 {}", 0, "", TokenRefused},
		{good, "404 {}", 0, "", InvalidResponse},
	} {
		s := audience(t, map[string]string{"/acme" + of: c.acme, "/zoo" + of: c.zoo})
		own, err := AzureDevOpsOwn(Person{Address: s.URL, Token: "sekret", Within: []string{"acme", "zoo"}}, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		ids, withheld, err := Readable(t.Context(), own)
		code := Code("")
		if r := (*Refusal)(nil); errors.As(err, &r) {
			code = r.Code
		}
		if len(ids) != c.ids || code != c.code || !strings.Contains(withheld, c.withheld) || (withheld == "") != (c.withheld == "") {
			t.Errorf("%s, %s: %v, %q, %v", c.acme, c.zoo, ids, withheld, err)
		}
	}
	own, err := AzureDevOpsOwn(Person{Address: "https://azure.example", Token: "sekret"}, tools(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Who(t.Context()); err == nil || !strings.Contains(err.Error(), "names an organisation") {
		t.Errorf("without an organisation: %v", err)
	}
}

package host

import (
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// complaints are common complaints about services that list code hosts, with the tests that would
// fail if they were true of Shoal.
var complaints = []struct {
	complaint string
	tests     []string
}{
	{"the host answered 500, and repositories were deleted", []string{"TestEveryHostKind_passesTheConformanceCases", "TestListingJob_failedTargetKeepsItsRepositories", "TestListingJob_neverRemovesWhatTheHostHas"}},
	{"the token was no good, and repositories were deleted", []string{"TestList_endsAtARefusedToken", "TestRefusedToken_hidesRepositoriesAfterThirtyDays"}},
	{"repositories that are deleted stay for months", []string{"TestListingJob_removesMissingRepositories", "TestMissingRepository_isLookedUpOnceAndThenNotFetched", "TestListingJob_targetMissingForSevenDaysNeedsConfirmation"}},
	{"a token was revoked, and nothing is shown", []string{"TestRefusedToken_hidesRepositoriesAfterThirtyDays", "TestConnectionList_explainsARefusedToken"}},
	{"large groups, or a whole server, time out", []string{"TestGitLab_largeGroupIsListedBySubgroups", "TestList_isPartialIfTheServerFails"}},
	{"some projects are missing, and nothing says why", []string{"TestConnectionSync_waitsAndPrintsItsResult", "TestList_issuesOfCommonMistakesSayWhatToDo"}},
	{"one group that cannot be read stops everything", []string{"TestEveryHostKind_passesTheConformanceCases"}},
	{"one forbidden project freezes the whole listing", []string{"TestEveryHostKind_passesTheConformanceCases", "TestListing_ofManyTargetsReportsEachFailureOnce"}},
	{"of thousands of projects one fails and cancels all", []string{"TestListing_ofManyTargetsReportsEachFailureOnce"}},
	{"the host is polled and cannot push", []string{"TestWebhook_acceptsOnlyTheSignatureOfItsHostKind", "TestWebhook_acceptsOnlySignedEvents"}},
	{"tokens need another user for git than for the API", []string{"TestFetchSource_usesTheFirstConnectionWithACredential", "TestEveryHostKind_passesTheConformanceCases"}},
	{"credentials of Gerrit are lost between listing and cloning", []string{"TestEveryHostKind_passesTheConformanceCases", "TestGerrit_accountComesFromTheConnectionOrItsURL"}},
	{"a certificate of one's own is an error that says nothing", []string{"TestHTTPClient_doesNotRetryABadCertificate", "TestProxiesAndCertificates_areUsedToListAndFetch"}},
	{"names with spaces are refused", []string{"TestEveryHostKind_passesTheConformanceCases"}},
	{"a body ends early behind a proxy that compresses", []string{"TestHTTPClient_retriesWithoutCompression"}},
	{"paging never ends where the token sees less than the total", []string{"TestEveryHostKind_passesTheConformanceCases", "TestGitea_listsTheSelectedRepositories"}},
	{"the same name in two projects is one repository", []string{"TestEveryHostKind_passesTheConformanceCases"}},
	{"only the first page is read", []string{"TestEveryHostKind_passesTheConformanceCases"}},
	{"a renamed repository is not found, two that swap names are mixed up", []string{"TestListingJob_neverRemovesWhatTheHostHas", "TestFormerRepositoryName_leadsToItForThirtyDays", "TestRealGitea_catalogMatchesItAfterRandomFaults"}},
	{"two connections rename a repository back and forth", []string{"TestListing_firstConnectionDecidesASharedName", "TestListing_identifiesRepositoriesByTheHostsOwnID"}},
	{"a name that ends in .git loses its end", []string{"TestEveryHostKind_passesTheConformanceCases"}},
	{"hosts are flooded with calls, one for each repository", []string{"TestHintedListing_staysWithinTheRateLimit", "TestMissingRepository_isNotPolledUntilAPush", "TestGitHubGraphQL_looksUpAHundredRepositoriesAtOnce", "TestChangedRepositories_useAQuarterOfTheRateLimit"}},
	{"a limit without a header is not waited for", []string{"TestExplainGitHub_saysWhyTheHostRefuses", "TestEveryHostKind_passesTheConformanceCases"}},
	{"versions of answers are of no use with tokens of apps", []string{"TestGitHubApp_responsesAreNotCached"}},
	{"credentials of git are seen by others, anonymous clones are slowed down", []string{"TestFetch_hidesThePasswordFromOtherProcessesAndServers", "TestHTTPClient_sendsTheTokenOnlyToItsHost"}},
}

// Each complaint has tests that exist.
func TestComplaintsAboutHosts_haveTests(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			declared[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range complaints {
		if len(c.tests) == 0 {
			t.Errorf("%s: no test", c.complaint)
		}
		for _, test := range c.tests {
			if !declared[test] {
				t.Errorf("%s: there is no %s", c.complaint, test)
			}
		}
	}
}

// If the server fails for a large group, its subgroups are listed one by one. Each repository is
// found once.
func TestGitLab_largeGroupIsListedBySubgroups(t *testing.T) {
	t.Parallel()
	project := func(id int, path string) string {
		return fmt.Sprintf(`{"id": %d, "path_with_namespace": %q, "visibility": "public"}`, id, path)
	}
	answers := map[string]string{
		"groups/acme/projects":                 project(1, "acme/app"),
		"groups/acme/descendant_groups?page=1": `{"id": 7}`,
		"groups/acme/descendant_groups?page=2": `{"id": 8}`,
		"groups/7/projects":                    project(2, "acme/a/one"),

		"groups/other/projects": "", "groups/other/descendant_groups?page=1": "", "groups/other/descendant_groups?page=2": "",
		"groups/8/projects": project(3, "acme/b/two") + "," + project(2, "acme/a/one"),
	}
	broken := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v4/")
		if r.URL.Query().Get("include_subgroups") == "true" || broken != "" && path == broken {
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		if strings.HasSuffix(path, "descendant_groups") {
			page := r.URL.Query().Get("page")
			path += "?page=" + page
			if page == "1" {
				w.Header().Set("Link", `<`+"http://"+r.Host+r.URL.Path+`?page=2>; rel="next"`)
			}
		}
		answer, ok := answers[path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "[%s]", answer)
	}))
	t.Cleanup(s.Close)

	list := func() *recorder {
		rec := &recorder{}
		conn := &config.GitLab{URL: s.URL, Groups: []string{"acme", "nobody", "other"}}
		conn.Name = "work"
		if err := openTest(t, conn).List(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	if rec := list(); rec.names() != "acme/a/one acme/app acme/b/two" || rec.problems() != "TARGET_EMPTY@groups/other UNREACHABLE@groups/nobody!" {
		t.Errorf("listed %s, issues %s %+v", rec.names(), rec.problems(), rec.issues)
	}

	// If one subgroup fails, the whole group is partial.
	broken = "groups/8/projects"
	if rec := list(); rec.names() != "acme/a/one acme/app" || !strings.Contains(rec.problems(), "UNREACHABLE@groups/acme!") {
		t.Errorf("listed %s, issues %s", rec.names(), rec.problems())
	}
}

// Thousands of targets are listed a few at once. A failed one is one issue.
func TestListing_ofManyTargetsReportsEachFailureOnce(t *testing.T) {
	t.Parallel()
	const n = 2500
	var mu sync.Mutex
	running, most := 0, 0
	var targets []target
	for i := range n {
		targets = append(targets, target{name: fmt.Sprintf("projects/%d", i), list: func(_ context.Context, found func(Repo, string) error) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running--
			}()
			if i == 1000 {
				return refusal(Forbidden, 403, "not this one")
			}
			return found(Repo{ExternalID: fmt.Sprint(i), Name: fmt.Sprintf("h/p%d", i)}, "p")
		}})
	}
	rec := &recorder{}
	if err := newCollector(rec, &choice{}).run(t.Context(), targets); err != nil {
		t.Fatal(err)
	}
	if len(rec.repos) != n-1 || rec.problems() != "FORBIDDEN@projects/1000!" || most > parallelTargets {
		t.Errorf("%d repositories, issues %s, %d at a time", len(rec.repos), rec.problems(), most)
	}
}

// If a proxy cuts compressed answers short, the client asks for plain ones.
func TestHTTPClient_retriesWithoutCompression(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			fmt.Fprint(w, onePage)
			return
		}
		var b strings.Builder
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, onePage)
		z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, b.String()[:b.Len()-12])
	}))
	t.Cleanup(s.Close)

	rec := &recorder{}
	err := openGitHubAt(t, s.URL, tools(t)).List(t.Context(), rec)
	if err != nil || rec.names() != "acme/app" || !slices.Equal(asked, []string{"gzip", "identity"}) {
		t.Errorf("%v, listed %s, asked for %v", err, rec.names(), asked)
	}
}

// A Gerrit account is in the connection or in its URL. Git uses the same one.
func TestGerrit_accountComesFromTheConnectionOrItsURL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conn  func(url string) *config.Gerrit
		path  string // of the API
		user  string
		clone string
	}{
		"nobody": {func(url string) *config.Gerrit { return &config.Gerrit{URL: url} }, "/projects/", "", "/app"},
		"named": {func(url string) *config.Gerrit { return &config.Gerrit{URL: url, User: "ci", Token: standToken} },
			"/a/projects/", "ci:sekret", "/a/app"},
		"in the address": {func(url string) *config.Gerrit {
			return &config.Gerrit{URL: strings.Replace(url, "://", "://ann:pass@", 1)}
		}, "/a/projects/", "ann:pass", "/a/app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, password, _ := r.BasicAuth()
				if r.URL.Path != c.path || strings.Trim(user+":"+password, ":") != c.user {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Query().Get("S") == "0" || r.URL.Query().Get("S") == "" {
					fmt.Fprint(w, ")]}'\n"+`{"app": {"id": "app", "state": "ACTIVE"}}`)
					return
				}
				fmt.Fprint(w, ")]}'\n{}")
			}))
			t.Cleanup(s.Close)
			conn, ts := c.conn(s.URL), tools(t)
			h, err := Open(conn, ts)
			if err != nil {
				t.Fatal(err)
			}
			rec := &recorder{}
			if err := h.List(t.Context(), rec); err != nil || len(rec.repos) != 1 {
				t.Fatalf("%v, listed %+v", err, rec.repos)
			}
			clone := rec.repos[0].Remote.URL
			cred, err := Credential(t.Context(), conn, clone, ts)
			if err != nil || clone != s.URL+c.clone || strings.Trim(cred.User+":"+cred.Password, ":") != c.user {
				t.Errorf("fetched from %s as %s, %v", clone, cred.User, err)
			}
		})
	}
}

// An app's token changes every hour, and so do the versions of its answers, so none are cached.
func TestGitHubApp_responsesAreNotCached(t *testing.T) {
	t.Parallel()
	s, ts := newAppSite(t)
	ts.Answers = NewAnswers(t.TempDir())
	h, err := Open(&config.GitHub{URL: s.URL, Token: standToken, Orgs: []string{"acme"}}, ts)
	if err != nil {
		t.Fatal(err)
	}
	c, installed, _ := h.(*github).clientFor(t.Context(), "acme")
	if c.cacheKey != "" || !installed {
		t.Errorf("answers of an app are kept as those of %q; installed: %v", c.cacheKey, installed)
	}
	if h.(*github).cacheKey == "" {
		t.Error("answers of the connection's own token are not kept")
	}
}

package host

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob/globtest"
)

// In listings, the globs of each property match as in the table of package glob.
func TestListingGlobs_matchLikePackageGlob(t *testing.T) {
	t.Parallel()
	for _, row := range globtest.Rows() {
		for _, name := range row.Matches {
			checkEveryProperty(t, row.Pattern, name, true)
		}
		for _, name := range row.Others {
			checkEveryProperty(t, row.Pattern, name, false)
		}
	}
}

// checkEveryProperty checks a glob with each property that takes globs. Names for hosts that ignore
// case are in lower case.
func checkEveryProperty(t *testing.T, pattern, name string, matches bool) {
	t.Helper()
	globs, exact := []string{pattern}, strings.ToLower(name) == name && strings.ToLower(pattern) == pattern && !strings.Contains(pattern, "[[:")
	for property, c := range map[string]struct {
		conn   config.Connection
		repo   Repo
		why    Reason // if the glob matches, or else with "!"
		letter bool   // whether case counts
	}{
		"github exclude.repos":     {conn: &config.GitHub{Exclude: config.GitHubExclude{Repos: globs}}, why: ByName},
		"github exclude.topics":    {conn: &config.GitHub{Exclude: config.GitHubExclude{Topics: globs}}, repo: Repo{Topics: []string{name}}, why: ByNoTopic},
		"github topics":            {conn: &config.GitHub{Topics: globs}, repo: Repo{Topics: []string{name}}, why: "!" + ByTopic},
		"gitlab exclude.projects":  {conn: &config.GitLab{Exclude: config.GitLabExclude{Projects: globs}}, why: ByName},
		"gitlab exclude.topics":    {conn: &config.GitLab{Exclude: config.GitLabExclude{Topics: globs}}, repo: Repo{Topics: []string{name}}, why: ByNoTopic},
		"gitlab topics":            {conn: &config.GitLab{Topics: globs}, repo: Repo{Topics: []string{name}}, why: "!" + ByTopic},
		"gitea exclude.repos":      {conn: &config.Gitea{Exclude: config.GiteaExclude{Repos: globs}}, why: ByName},
		"bitbucket exclude.repos":  {conn: &config.Bitbucket{Exclude: config.BitbucketExclude{Repos: globs}}, why: ByName},
		"azure exclude.repos":      {conn: &config.AzureDevOps{Exclude: config.AzureDevOpsExclude{Repos: globs}}, why: ByName},
		"gerrit exclude.projects":  {conn: &config.Gerrit{Exclude: config.GerritExclude{Projects: globs}}, why: ByName, letter: true},
		"gerrit projects":          {conn: &config.Gerrit{Projects: globs}, why: "!" + "not selected", letter: true},
		"azure exclude.projects":   {conn: &config.AzureDevOps{Exclude: config.AzureDevOpsExclude{Projects: globs}}, why: ByProject},
		"bitbucket server exclude": {conn: &config.Bitbucket{Deployment: config.Server, Exclude: config.BitbucketExclude{Repos: globs}}, why: ByName},
	} {
		if !exact && !c.letter {
			continue
		}
		choice, err := choiceOf(c.conn)
		if err != nil {
			t.Fatalf("%s of %s: %v", pattern, property, err)
		}
		got := choice.exclusionReason(&c.repo, name)
		switch property {
		case "gerrit projects":
			if !(&gerrit{choice: choice}).selects(name) {
				got = "not selected"
			}
		case "azure exclude.projects":
			if choice.projects.Match(name) {
				got = ByProject
			}
		}
		want, unless := strings.CutPrefix(string(c.why), "!")
		if matches == unless {
			want = ""
		}
		if got != Reason(want) {
			t.Errorf("%s: %s %s: %q, want %q", property, pattern, name, got, want)
		}
	}
}

// Each kind of host leaves out repositories by globs.
func TestListingGlobs_leaveOutRepositoriesForEachKindOfHost(t *testing.T) {
	t.Parallel()
	answer := func(v any) string {
		b, _ := json.Marshal(v)
		return string(b)
	}
	type entry = map[string]any
	var flat, nested, azure []entry
	projects := map[string]entry{}
	for i, name := range []string{"one", "two", "three"} {
		flat = append(flat, entry{"id": i + 1, "full_name": "acme/" + name, "topics": []string{name}, "default_branch": "main"})
		nested = append(nested, entry{"id": i + 1, "path_with_namespace": "acme/" + name, "topics": []string{name}, "default_branch": "main", "http_url_to_repo": "https://h/acme/" + name, "web_url": "https://h/acme/" + name})
		azure = append(azure, entry{"id": name, "name": name, "project": entry{"name": "p" + name}, "defaultBranch": "refs/heads/main"})
		projects["acme/"+name] = entry{"state": "ACTIVE"}
	}
	s := answering(t, "", map[string]string{
		"/api/v3/orgs/acme/repos": answer(flat), "/api/v1/orgs/acme/repos?page=1": answer(flat), "/api/v1/orgs/acme/repos?page=2": "[]",
		"/api/v4/groups/acme/projects": answer(nested), "/acme/_apis/git/repositories": answer(entry{"value": azure}),
		"/projects/?S=0": answer(projects), "/projects/?S=3": "{}",
	})
	for _, c := range []struct {
		conn func(globs ...string) config.Connection
		glob string
		want string
	}{
		{func(g ...string) config.Connection {
			return &config.GitHub{URL: s.URL, Orgs: []string{"acme"}, Exclude: config.GitHubExclude{Repos: g}}
		}, "acme/@(one|two)", "three"},
		{func(g ...string) config.Connection {
			return &config.GitHub{URL: s.URL, Orgs: []string{"acme"}, Exclude: config.GitHubExclude{Repos: g}}
		}, "!acme/one", "one"},
		{func(g ...string) config.Connection {
			return &config.GitHub{URL: s.URL, Orgs: []string{"acme"}, Topics: g}
		}, "+(one|two)", "one two"},
		{func(g ...string) config.Connection {
			return &config.GitLab{URL: s.URL, Groups: []string{"acme"}, Exclude: config.GitLabExclude{Projects: g}}
		}, "acme/!(one)", "one"},
		{func(g ...string) config.Connection {
			return &config.GitLab{URL: s.URL, Groups: []string{"acme"}, Exclude: config.GitLabExclude{Topics: g}}
		}, "{a..o}*", "three two"},
		{func(g ...string) config.Connection {
			return &config.Gitea{URL: s.URL, Orgs: []string{"acme"}, Exclude: config.GiteaExclude{Repos: g}}
		}, "acme/?(o)ne", "three two"},
		{func(g ...string) config.Connection {
			return &config.AzureDevOps{URL: s.URL, Orgs: []string{"acme"}, Exclude: config.AzureDevOpsExclude{Projects: g}}
		}, "@(pone|ptwo)", "three"},
		{func(g ...string) config.Connection {
			return &config.AzureDevOps{URL: s.URL, Orgs: []string{"acme"}, Exclude: config.AzureDevOpsExclude{Repos: g}}
		}, "@(pone|ptwo)/*(one|t)*", "three"},
		{func(g ...string) config.Connection { return &config.Gerrit{URL: s.URL, Projects: g} }, "acme/@(one|two)", "one two"},
		{func(g ...string) config.Connection { return &config.Gerrit{URL: s.URL, Projects: g} }, "!acme/one", "three two"},
	} {
		h, err := Open(c.conn(c.glob, "unlike*"), tools(t))
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{}
		if err := h.List(t.Context(), rec); err != nil {
			t.Fatalf("%T %s: %v (asked for %v)", c.conn(), c.glob, err, s.unknown)
		}
		var names []string
		for _, r := range rec.repos {
			names = append(names, r.Name[strings.LastIndexByte(r.Name, '/')+1:])
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%T %s lists %q, want %q", c.conn(), c.glob, got, c.want)
		}

		// Only the glob that matches nothing is reported.
		if len(rec.issues) != 1 || rec.issues[0].Code != NoEffect || !strings.Contains(rec.issues[0].Text, "matches unlike*;") {
			t.Errorf("%T %s: issues %+v", c.conn(), c.glob, rec.issues)
		}
	}
	if _, err := Open(&config.GitHub{Exclude: config.GitHubExclude{Repos: []string{"a["}}}, Tools{}); err == nil {
		t.Error("a host is opened that cannot tell what is left out")
	}
}

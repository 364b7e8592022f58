package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/shard/query"
)

// The reference names repositories of Azure DevOps without organisation and server path. Every
// place that takes a name accepts this form. Other hosts have no such form.
func TestAzureRepositoryName_isAcceptedInItsShortForm(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{
		"connections": {"c": {"type": "git", "url": "file:///srv/*"}},
		"contexts": {
			"short": {"include": ["dev.azure.com/Proj/*"]},
			"short-without": {"include": ["**"], "exclude": ["dev.azure.com/Proj/one", "ado.example.com/**"]},
			"a-level-short": {"include": ["git.example.com/*"], "exclude": ["git.example.com/a/b/c/d"], "includeTopics": ["nowhere"], "excludeTopics": ["none"]}
		}
	}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	fence := w.View().Job(catalog.JobSync, "c").Fence
	azure := catalog.RepoFacts{HostKind: "azuredevops", Visibility: catalog.Public, Public: true}
	other := catalog.RepoFacts{HostKind: "gitlab", Visibility: catalog.Public, Public: true}
	names := map[string]catalog.RepoFacts{
		"dev.azure.com/acme/Proj/one": azure, "dev.azure.com/acme/Proj/two": azure, "dev.azure.com/beta/Proj/two": azure,
		"ado.example.com/tfs/Coll/Proj/one": azure, "git.example.com/a/b/c": other,
	}
	page := &catalog.SyncPage{Connection: "c", Fence: fence}
	for name, facts := range names {
		facts.ExternalID = name + "#"
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: name, RepoFacts: facts})
	}
	w.Do(page)
	if unused := w.View().UnusedGlobs(); len(unused) > 0 {
		t.Errorf("during the first listing: %q", unused)
	}
	w.Do(&catalog.FinishSync{Connection: "c", Fence: fence, Complete: true, Listed: uint32(len(names))})

	seen, err := account.NewGate(agreed{w.View()}).Repos(catalog.Operator())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string // want: ends of names
	}{
		{`repo:dev.azure.com/Proj/one`, "acme/Proj/one"},
		{`repo:^dev\.azure\.com/Proj/one$`, "acme/Proj/one"},
		{`repo:^dev\.azure\.com/Proj/`, "acme/Proj/one acme/Proj/two beta/Proj/two"},
		{`repo:dev.azure.com/acme/Proj/one`, "acme/Proj/one"},
		{`repo:ado.example.com/Proj/one`, "Coll/Proj/one"},
		{`repo:git.example.com/b/c`, ""},
		{`reposet:dev.azure.com/Proj/one`, "acme/Proj/one"},
		{`reposet:dev.azure.com/Proj/two`, "acme/Proj/two beta/Proj/two"},
		{`reposet:ado.example.com/Proj/one,dev.azure.com/acme/Proj/two`, "Coll/Proj/one acme/Proj/two"},
		{`reposet:git.example.com/b/c`, ""},
		{`context:short`, "acme/Proj/one acme/Proj/two beta/Proj/two"},
		{`context:short-without`, "a/b/c acme/Proj/two beta/Proj/two"},
	} {
		parsed, err := query.Parse(c.text, query.Options{})
		if err != nil {
			t.Fatal(c.text, err)
		}
		q := &question{visible: seen}
		if err := q.resolve(parsed.Q); err != nil {
			t.Fatal(c.text, err)
		}
		got := []string{}
		for it := q.repos.Iterator(); it.HasNext(); {
			parts := strings.Split(w.View().Repo(it.Next()).Name, "/")
			got = append(got, strings.Join(parts[len(parts)-3:], "/"))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s finds %q, want %q", c.text, got, c.want)
		}
	}

	// A short name identifies one repository, or the error lists the candidates.
	if repo, err := seen.ByName("dev.azure.com/Proj/one"); err != nil || repo.Name != "dev.azure.com/acme/Proj/one" {
		t.Errorf("a short name leads to %v, %v", repo, err)
	}
	if _, err := seen.ByName("dev.azure.com/Proj/two"); err == nil || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "beta") {
		t.Errorf("a short name of two: %v", err)
	}
	seen.Set.Remove(w.View().RepoByName("dev.azure.com/beta/Proj/two").ID)
	if repo, err := seen.ByName("dev.azure.com/Proj/two"); err != nil || repo.Name != "dev.azure.com/acme/Proj/two" {
		t.Errorf("beside a hidden one it leads to %v, %v", repo, err)
	}

	unused := strings.Join(w.View().UnusedGlobs(), "\n")
	for _, glob := range []string{"git.example.com/*", "git.example.com/a/b/c/d", "nowhere", "none"} {
		if strings.Count(unused, `"`+glob+`"`) != 1 {
			t.Errorf("%s is not reported in\n%s", glob, unused)
		}
	}
	if strings.Count(unused, "\n") != 3 {
		t.Errorf("reported are\n%s", unused)
	}
}

package job

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

func TestListingJob_warnsIfAnotherConnectionHasTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "git", "url": "file:///one/*"}, "b": {"type": "git", "url": "file:///two/*"}}}`, 1)
	list := []host.Repo{{Name: "local/x", Remote: git.Remote{URL: "file:///two/x"}}}
	if got := shadowedOf(w.View(), list); got != nil {
		t.Errorf("in an empty catalog: %q", got)
	}
	w.plan()
	fence := w.View().Job(catalog.JobSync, "a").Fence
	w.Do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "local/x", RepoFacts: catalog.RepoFacts{CloneURL: "file:///one/x"}}}})
	got := shadowedOf(w.View(), list)
	if len(got) != 1 || !strings.Contains(got[0], "file:///two/x") || !strings.Contains(got[0], "connection a") {
		t.Errorf("got %q, want one warning that names the connection and the address", got)
	}
	list[0].Remote.URL = "file:///one/x"
	if got := shadowedOf(w.View(), list); got != nil {
		t.Errorf("for the same address: %q", got)
	}
}

// A local repository whose origin is listed by another connection is named after its directory,
// whichever connection synced first.
func TestListingJob_aLocalRepositoryGivesItsNameToTheHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a-users": {"type": "git", "url": "file:///users/*"}, "z-corp": {"type": "git", "url": "https://git.corp.example/acme/payroll"}}}`, 1)
	const name = "git.corp.example/acme/payroll"
	claims := func() []host.Repo {
		return []host.Repo{{Name: name, DisplayName: name, OwnName: "local/app", Remote: git.Remote{URL: "file:///users/app"}}}
	}
	list := claims()
	if got := giveWayOf(w.View(), "a-users", list); got != nil || list[0].Name != name {
		t.Errorf("nobody else lists it: %q, %+v", got, list)
	}

	w.plan()
	fence := w.View().Job(catalog.JobSync, "z-corp").Fence
	w.Do(&catalog.SyncPage{Connection: "z-corp", Fence: fence, Repos: []catalog.ListedRepo{{Name: name, RepoFacts: catalog.RepoFacts{CloneURL: "https://git.corp.example/acme/payroll"}}}})
	list = claims()
	got := giveWayOf(w.View(), "a-users", list)
	if len(got) != 1 || !strings.Contains(got[0], "connection z-corp") || !strings.Contains(got[0], "local/app") || !strings.Contains(got[0], name) {
		t.Errorf("warnings %q, want one that names the connection and both names", got)
	}
	if list[0].Name != "local/app" || list[0].DisplayName != "local/app" {
		t.Errorf("listed as %+v", list[0])
	}
	list = claims()
	if got := giveWayOf(w.View(), "z-corp", list); got != nil {
		t.Errorf("only the connection itself lists it: %q", got)
	}
}

// giveWayOf returns the names under which a connection lists repositories.
func giveWayOf(view *catalog.View, connection string, list []host.Repo) []string {
	l := newListing(func() *catalog.View { return view }, nil, &catalog.Job{Subject: connection})
	for i := range list {
		l.useOwnName(view, &list[i])
	}
	return l.renamed
}

func shadowedOf(view *catalog.View, list []host.Repo) []string {
	l := newListing(func() *catalog.View { return view }, nil, &catalog.Job{})
	for i := range list {
		l.noteProblems(view, &list[i])
	}
	return l.shadowed
}

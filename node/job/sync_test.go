package job

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

func TestANameThatAnotherConnectionHasIsWarnedOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "git", "url": "file:///one/*"}, "b": {"type": "git", "url": "file:///two/*"}}}`, 1)
	list := []host.Repo{{Name: "local/x", Remote: git.Remote{URL: "file:///two/x"}}}
	if got := shadowed(w.state.View(), list); got != nil {
		t.Errorf("in an empty catalog: %q", got)
	}
	w.plan()
	fence := w.state.View().Job(catalog.JobSync, "a").Fence
	w.do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "local/x", RepoFacts: catalog.RepoFacts{CloneURL: "file:///one/x"}}}})
	got := shadowed(w.state.View(), list)
	if len(got) != 1 || !strings.Contains(got[0], "file:///two/x") || !strings.Contains(got[0], "connection a") {
		t.Errorf("got %q, want one warning that names the connection and the address", got)
	}
	list[0].Remote.URL = "file:///one/x"
	if got := shadowed(w.state.View(), list); got != nil {
		t.Errorf("for the same address: %q", got)
	}
}

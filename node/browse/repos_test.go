package browse

import (
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The result of a fetch counts more than the host's report.
func TestRepository_withFetchedCommitsIsNotEmpty(t *testing.T) {
	t.Parallel()
	commit := []catalog.Revision{{Name: "HEAD", Commit: "c0ffee"}}
	for name, c := range map[string]struct {
		repo catalog.Repo
		want bool
	}{
		"said to be, and not fetched yet": {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}}, true},
		"said to be, with a commit":       {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}, Generation: 1, Revisions: commit}, false},
		"said to be, without a commit":    {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}, Generation: 1}, true},
		"without a commit":                {catalog.Repo{Generation: 1}, true},
		"with a commit":                   {catalog.Repo{Generation: 1, Revisions: commit}, false},
		"not fetched yet":                 {catalog.Repo{}, false},
	} {
		if got := isEmpty(&c.repo); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package browse

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// What was found when a repository was fetched goes before what its host says.
func TestARepositoryWithCommitsIsNotEmpty(t *testing.T) {
	t.Parallel()
	indexed, commit := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), []catalog.Revision{{Name: "HEAD", Commit: "c0ffee"}}
	for name, c := range map[string]struct {
		repo catalog.Repo
		want bool
	}{
		"said to be, and not fetched yet": {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}}, true},
		"said to be, with a commit":       {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}, IndexedAt: indexed, Revisions: commit}, false},
		"said to be, without a commit":    {catalog.Repo{RepoFacts: catalog.RepoFacts{Empty: true}, IndexedAt: indexed}, true},
		"without a commit":                {catalog.Repo{IndexedAt: indexed}, true},
		"with a commit":                   {catalog.Repo{IndexedAt: indexed, Revisions: commit}, false},
		"not fetched yet":                 {catalog.Repo{}, false},
	} {
		if got := isEmpty(&c.repo); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

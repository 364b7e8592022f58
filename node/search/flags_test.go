package search

import (
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/query"
)

// "internal" selects internal repositories, and "private" all that are not public.
func TestVisibilityFilter_selectsInternalOrAllNonPublicRepositories(t *testing.T) {
	t.Parallel()
	all := map[string]*catalog.Repo{
		"public":   {RepoFacts: catalog.RepoFacts{Visibility: catalog.Public, Public: true}},
		"internal": {RepoFacts: catalog.RepoFacts{Visibility: catalog.Internal}},
		"private":  {RepoFacts: catalog.RepoFacts{Visibility: catalog.Private}},
		"unknown":  {},
	}
	for value, want := range map[string]map[string]bool{
		"public":   {"public": true},
		"internal": {"internal": true},
		"private":  {"internal": true, "private": true, "unknown": true},
		"any":      {"public": true, "internal": true, "private": true, "unknown": true},
	} {
		for name, repo := range all {
			if got := passesFlag(repo, &query.Flag{Kind: query.Visibility, Value: value}); got != want[name] {
				t.Errorf("visibility:%s finds one that is %s: %t", value, name, got)
			}
		}
	}
}

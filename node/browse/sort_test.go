package browse

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Each order of repositories. Equal ones are sorted by name in both directions.
func TestRepositorySorts_orderEqualRepositoriesByName(t *testing.T) {
	t.Parallel()
	pushed := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	a := &catalog.Repo{Name: "a", RepoFacts: catalog.RepoFacts{Stars: 5, PushedAt: pushed(2)}}
	b := &catalog.Repo{Name: "b", RepoFacts: catalog.RepoFacts{Stars: 900, PushedAt: pushed(1)}}
	c := &catalog.Repo{Name: "c", RepoFacts: catalog.RepoFacts{Stars: 5, PushedAt: pushed(3)}}

	for sort, want := range map[string][2]string{
		"":       {"abc", "cba"},
		"name":   {"abc", "cba"},
		"pushed": {"bac", "cab"},
		"size":   {"abc", "abc"},
		"stars":  {"acb", "bac"},
	} {
		for i, desc := range []bool{false, true} {
			req := ReposRequest{Sort: sort, Desc: desc}
			if err := req.check(); err != nil {
				t.Fatal(err)
			}
			list := []*catalog.Repo{c, a, b}
			slices.SortFunc(list, req.compareRepos)
			if got := list[0].Name + list[1].Name + list[2].Name; got != want[i] {
				t.Errorf("sort %q, descending %t: %s, want %s", sort, desc, got, want[i])
			}
		}
	}

	req := ReposRequest{Sort: "size of text"}
	if err := req.check(); err == nil || !strings.Contains(err.Error(), "stars") {
		t.Errorf("an unknown order: %v, want the orders that there are", err)
	}
}

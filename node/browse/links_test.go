package browse

import (
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestALinkToTheHostLeadsToTheLines(t *testing.T) {
	t.Parallel()
	repo := &catalog.Repo{RepoFacts: catalog.RepoFacts{HostKind: "gitlab", WebURL: "https://h/g/r", DefaultBranch: "main"}}
	for _, c := range []struct {
		first, lines int
		want         string
	}{{0, 0, ""}, {10, 0, ""}, {10, 1, "#L10-10"}, {10, 5, "#L10-14"}} {
		if got := externalLines(repo, "", "a.go", c.first, c.lines); got != "https://h/g/r/-/blob/main/a.go"+c.want {
			t.Errorf("%d lines from %d: %s", c.lines, c.first, got)
		}
	}
}

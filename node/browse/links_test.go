package browse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

func TestCodeHostLink_leadsToTheLines(t *testing.T) {
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

// A short name means the same for reading as for a search: the branch, unless a tag of that name
// is indexed.
func TestShortRevisionName_meansTheBranchUnlessTheTagIsIndexed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ indexed, ref, want string }{
		{"HEAD refs/heads/x", "x", "refs/heads/x"},
		{"HEAD refs/heads/x", "x~2^{commit}", "refs/heads/x~2^{commit}"},
		{"HEAD refs/heads/x refs/tags/x", "x", "x"},
		{"HEAD refs/tags/x", "x", "x"},
		{"HEAD", "x", "x"},
		{"HEAD", "main", "refs/heads/main"}, // HEAD is the default branch
		{"HEAD refs/tags/main", "main", "main"},
		{"HEAD refs/heads/x", "refs/tags/x", "refs/tags/x"},
		{"HEAD refs/heads/refs/tags/x", "refs/tags/x", "refs/heads/refs/tags/x"},
		{"HEAD refs/heads/x", "", ""},
		{"HEAD refs/heads/x", "~1", "~1"},
	} {
		repo := &catalog.Repo{RepoFacts: catalog.RepoFacts{DefaultBranch: "main"}}
		for _, name := range strings.Fields(c.indexed) {
			repo.Revisions = append(repo.Revisions, catalog.Revision{Name: name})
		}
		if got := (&site{repo: repo}).fullRevision(c.ref); got != c.want {
			t.Errorf("%q where %s are indexed: %q, want %q", c.ref, c.indexed, got, c.want)
		}
	}
}

// The number of names shown next to a commit is limited, however many branches point at it.
func TestCommitDecoration_limitsTheNames(t *testing.T) {
	t.Parallel()
	c := &git.Commit{Head: true, Refs: []string{"refs/heads/main", "refs/tags/v1"}}
	for i := range 100_000 {
		c.Refs = append(c.Refs, fmt.Sprintf("refs/heads/b%05d", i))
	}
	got := decoration(c, "main")
	begin, more, ok := strings.Cut(got, ", b00340, ")
	if !ok || !strings.HasPrefix(begin, "HEAD -> main, tag: v1, b00000, b00001, ") || more != "99659 more" {
		t.Errorf("%d bytes: %.60s ... %s", len(got), got, got[max(0, len(got)-60):])
	}
}

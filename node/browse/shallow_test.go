package browse

import (
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// A page of history says that the repository is shallow, because older commits may exist.
func TestCommitList_saysThatARepositoryIsShallow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, shallow := filepath.Join(dir, "whole.git"), filepath.Join(dir, "shallow.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", source)
	gitRun(t, `commit refs/heads/main
committer Ann <ann@example.org> 1700000000 +0000
data 5
Begin
M 100644 inline README.md
data 8
# hello

commit refs/heads/main
committer Ann <ann@example.org> 1700000060 +0000
data 6
Change
M 100644 inline a.txt
data 2
a

`, "-C", source, "fast-import", "--quiet")
	gitRun(t, "", "clone", "--quiet", "--bare", "--depth=1", "file://"+source, shallow)
	siteOf := func(source string) *site {
		m := git.Open(filepath.Join(t.TempDir(), "1.git"))
		t.Cleanup(func() { m.Close() })
		if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(source)}, git.FetchOptions{}); err != nil {
			t.Fatal(err)
		}
		return &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}}}}
	}
	whole, cut := siteOf(source), siteOf(shallow)

	for name, tt := range map[string]struct {
		site    *site
		req     CommitsRequest
		commits int
		shallow bool
	}{
		"whole history":               {site: whole, commits: 2},
		"whole history, no match":     {site: whole, req: CommitsRequest{Query: "nothing like it"}},
		"shallow":                     {site: cut, commits: 1, shallow: true},
		"shallow, one path":           {site: cut, req: CommitsRequest{Path: "README.md"}, commits: 1, shallow: true},
		"shallow, no match of a word": {site: cut, req: CommitsRequest{Query: "Begin"}, shallow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := ask(t, tt.site, commitsOperation, tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Commits) != tt.commits || r.Shallow != tt.shallow {
				t.Errorf("%d commits, shallow: %t; want %d, %t", len(r.Commits), r.Shallow, tt.commits, tt.shallow)
			}
		})
	}

	// So do the other operations on history.
	for name, tt := range map[string]struct {
		site    *site
		shallow bool
	}{"whole": {whole, false}, "shallow": {cut, true}} {
		traced, err := ask(t, tt.site, traceOperation, TraceRequest{Text: "hello"})
		if err != nil || traced.Shallow != tt.shallow {
			t.Errorf("%s: trace: shallow %t, %v", name, traced.Shallow, err)
		}
		authors, err := ask(t, tt.site, authorsOperation, AuthorsRequest{Page: 1, PerPage: 10})
		if err != nil || authors.Shallow != tt.shallow {
			t.Errorf("%s: authors: shallow %t, %v", name, authors.Shallow, err)
		}
		for _, lines := range []int{0, 5} {
			blamed, err := ask(t, tt.site, blameOperation, BlameRequest{Path: "README.md", First: min(lines, 1), Lines: lines})
			if err != nil {
				t.Fatal(err)
			}
			if c := blamed.Commits[blamed.Ranges[0].Hash]; c.Edge != tt.shallow || blamed.Shallow != tt.shallow {
				t.Errorf("%s: blame of %d lines: %+v", name, lines, c)
			}
		}
	}
}

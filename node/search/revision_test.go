package search

import (
	"reflect"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestGlobAnswer_listsAPathOnce(t *testing.T) {
	t.Parallel()
	var r GlobResponse
	for _, path := range []string{"b", "a", "b"} {
		r.add("two", path)
	}
	r.add("one", "b")
	r.sortByName()

	want := GlobResponse{Repos: []GlobRepo{{"one", []string{"b"}}, {"two", []string{"a", "b"}}}, Files: 3}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestNameOfRevision_resolvesBranchesTagsAndCommits(t *testing.T) {
	t.Parallel()
	repo := &catalog.Repo{RepoFacts: catalog.RepoFacts{DefaultBranch: "main"}, Revisions: []catalog.Revision{
		{Name: "HEAD", Commit: "c1"}, {Name: "refs/heads/1.x", Commit: "c2"}, {Name: "refs/tags/1.x", Commit: "c3"}, {Name: "refs/heads/b", Commit: "c4"},
	}}
	for ref, want := range map[string]string{
		"HEAD": "HEAD", "main": "HEAD", "refs/heads/main": "HEAD", "b": "refs/heads/b",
		"1.x": "refs/tags/1.x", "refs/heads/1.x": "refs/heads/1.x", "c2": "refs/heads/1.x", "none": "",
	} {
		if got := nameOfRevision(repo, ref); got != want {
			t.Errorf("%s is indexed as %q, want %q", ref, got, want)
		}
	}
}

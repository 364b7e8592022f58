package node_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

func TestSearch_findsARevisionByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "kraken one\n", "same.txt": "both\n"})
	app.Git("checkout", "-q", "-b", "feature/x")
	app.Commit(map[string]string{"a.txt": "kraken two\n", "only.txt": "kraken three\n"})
	app.Git("tag", "-a", "v1", "-m", "v1")
	app.Git("checkout", "-q", "main")
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*",
		"revisions": {"branches": ["**"], "tags": ["*"]}}}}`, dir)})
	n.WaitIndexed(1)
	want(t, n.Find("kraken"), "local/app:a.txt")
	want(t, n.Find("kraken rev:main"), "local/app:a.txt")
	want(t, n.Find("kraken rev:feature/x"), "local/app:a.txt", "local/app:only.txt")
	want(t, n.Find("kraken rev:v1"), "local/app:a.txt", "local/app:only.txt")
	want(t, n.Find("two"))
	want(t, n.Find("kraken rev:*"), "local/app:a.txt", "local/app:a.txt", "local/app:only.txt")
	want(t, n.Find("both rev:*"), "local/app:same.txt")
	want(t, n.Find("kraken rev:nothing"))
}

// If a branch and a tag have one name, a tool takes the tag, in one repository as in all. If a
// repository has only one of them, it takes that.
func TestRevision_tagWinsOverBranchOfTheSameName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, refs := range map[string][]string{"both": {"branch", "tag"}, "branch": {"branch"}, "tag": {"tag"}} {
		repo := nodetest.NewRepo(t, filepath.Join(dir, name), map[string]string{"same.txt": "kraken same\n"})
		for _, kind := range refs {
			repo.Git("checkout", "-q", "--detach", "main")
			repo.Commit(map[string]string{"a.txt": "kraken " + kind + "\n", kind + ".txt": "kraken\n"})
			repo.Git(kind, "x")
		}
		repo.Git("checkout", "-q", "main")
	}
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*",
		"revisions": {"branches": ["**"], "tags": ["*"]}}}}`, dir)})
	n.WaitIndexed(3)

	for repo, want := range map[string][]string{"both": {"tag"}, "branch": {"branch"}, "tag": {"tag"}, "": {"tag", "branch", "tag"}} {
		var files []string
		for i, kind := range want {
			name := repo
			if name == "" {
				name = []string{"both", "branch", "tag"}[i]
			}
			files = append(files, name+" a.txt kraken "+kind, name+" "+kind+".txt kraken", name+" same.txt kraken same")
		}
		req := search.GrepRequest{Pattern: "kraken.*", Ref: "x"}
		if repo != "" {
			req.Repo = "local/" + repo
		}
		r, err := n.Search.Grep(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Files {
			got = append(got, fmt.Sprintf("%s %s %s", filepath.Base(f.Repo), f.Path, f.Lines[0].Text))
		}
		slices.Sort(files)
		slices.Sort(got)
		if !slices.Equal(got, files) {
			t.Errorf("in %q: %q, want %q", repo, got, files)
		}
	}
}

// A repository without commits cannot lack a revision: an answer over all repositories is
// complete.
func TestRevision_emptyRepositoryKeepsAnswersComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "kraken\n"})
	emptyRepo(t, filepath.Join(dir, "nothing"))
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(2)

	for ref, why := range map[string]coverage.Kind{"main": "", "nowhere": coverage.NoRevision} {
		r, err := n.Search.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "kraken", Ref: ref})
		if err != nil || r.Coverage.Worst() != why {
			t.Errorf("at %s: %+v, %v; want cut %q", ref, r, err, why)
		}

		// Words are ranked in the same repositories, whether ref or the query names the revision.
		for _, req := range []search.RankedRequest{{Query: "kraken", Ref: ref, Limit: 1}, {Query: "kraken rev:" + ref, Limit: 1}} {
			r, err := n.Search.Ranked(t.Context(), catalog.Operator(), req)
			if err != nil || r.Coverage.Worst() != why || why != "" && r.Coverage.Gap(why).Ref != ref {
				t.Errorf("%+v: %+v, %v; want cut %q", req, r, err, why)
			}
		}
	}
}

// In an unindexed or unknown revision a missing symbol proves nothing, in one repository as in
// all.
func TestSymbols_ofAnUnindexedRevisionAreUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"m.txt": "kraken\n"})
	repo.Git("checkout", "-q", "-b", "side")
	repo.Commit(map[string]string{"s.txt": "SideOnly kraken\n"})
	repo.Git("checkout", "-q", "main")
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)

	for ref, want := range map[string]coverage.Kind{"": "", "HEAD": "", "main": "", "side": coverage.NoRevision, "nosuch": coverage.NoRevision} {
		for _, name := range []string{"", "local/app"} {
			req := symbols.SymbolRequest{Symbol: "SideOnly", Revision: ref, Repo: name}
			for kind, ask := range map[string]func(context.Context, catalog.Viewer, symbols.SymbolRequest) (*symbols.SymbolResponse, error){
				"definitions": n.Search.Definitions, "references": n.Search.References,
			} {
				r, err := ask(t.Context(), catalog.Operator(), req)
				if err != nil || r.Coverage.Worst() != want || r.Coverage.Exhaustive() != (want == "") || want != "" && r.Coverage.Gap(want).Ref != ref {
					t.Errorf("%s at %q of %q: %+v, %v; want %q", kind, ref, name, r, err, want)
				}
			}
		}
	}
}

package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
)

// The commit's files are partly those of the index, partly changed, deleted or added since.
func TestTools_readUnindexedCommits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "app")
	app := nodetest.NewRepo(t, dir, map[string]string{
		"same.go": "package kraken\n", "changed.go": "package kraken\n\nvar old = 1\n", "gone.go": "package kraken\n", "test/a.go": "package kraken // kraken\n",
	})
	app.Git("tag", "old")
	app.Git("rm", "-q", "gone.go")
	app.Commit(map[string]string{"changed.go": "package other\n", "new.go": "package kraken\n"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s"}}}`, dir)})
	n.WaitIndexed(1)
	grep := func(req search.GrepRequest) *search.GrepResponse {
		t.Helper()
		req.Repo = "local/app"
		r, err := n.Search.Grep(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatalf("%+v: %v", req, err)
		}
		return r
	}
	lines := func(r *search.GrepResponse) (all []string) {
		for _, f := range r.Files {
			for _, l := range f.Lines {
				all = append(all, fmt.Sprintf("%s:%d:%s", f.Path, l.Number, l.Text))
			}
		}
		return all
	}
	old := grep(search.GrepRequest{Pattern: "kraken", Ref: "old"})
	want(t, lines(old), "changed.go:1:package kraken", "gone.go:1:package kraken", "same.go:1:package kraken", "test/a.go:1:package kraken // kraken")
	if old.Coverage.Worst() != "" || old.Matches != 4 {
		t.Errorf("%+v", old)
	}
	want(t, lines(grep(search.GrepRequest{Pattern: "kraken"})), "new.go:1:package kraken", "same.go:1:package kraken", "test/a.go:1:package kraken // kraken")
	want(t, lines(grep(search.GrepRequest{Pattern: "kraken", Ref: "old", Paths: paths.Filter{Dir: "test"}})), "test/a.go:1:package kraken // kraken")
	want(t, lines(grep(search.GrepRequest{Pattern: "other", Ref: "old"})))
	if r := grep(search.GrepRequest{Pattern: "kraken", Ref: "HEAD~1", Limit: 2}); r.Coverage.Worst() != coverage.Limit || !slices.Equal(lines(r), lines(old)[:2]) {
		t.Errorf("the first two: %v, of %v", lines(r), lines(old))
	}
	if r := grep(search.GrepRequest{Pattern: "kraken", Ref: "old", Counts: true}); r.Coverage.Worst() != "" || len(r.Files) != 4 || r.Matches != 5 || r.Files[0].Lines != nil {
		t.Errorf("counts: %+v", r)
	}
	g, err := n.Search.Glob(t.Context(), catalog.Operator(), search.GlobRequest{Pattern: "**/*.go", Repo: "local/app", Ref: "old"})
	if err != nil || g.Coverage.Worst() != "" || g.Files != 4 || strings.Join(g.Repos[0].Paths, " ") != "changed.go gone.go same.go test/a.go" {
		t.Errorf("%+v, %v", g, err)
	}
}

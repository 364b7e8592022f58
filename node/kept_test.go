package node_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
)

// kept starts a node whose repository has two files that are only indexed by name: a large text
// and a binary file.
func kept(t *testing.T) *nodetest.Node {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	nodetest.NewRepo(t, dir, map[string]string{
		"main.go": "package main // a kraken\n", "docs/large.txt": strings.Repeat("nothing here\n", 200) + "the kraken sleeps\n", "docs/picture.bin": "kraken\x00",
	})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"settings": {"maxFileSize": 1000}, "connections": {"app": {"type": "git", "url": "file://%s"}}}`, dir)})
	n.WaitIndexed(1)
	return n
}

func TestSearch_countsUnsearchedFiles(t *testing.T) {
	t.Parallel()
	n := kept(t)
	for query, want := range map[string]int{
		"kraken": 2, "kraken file:docs/large": 1, "-kraken": 2, "kraken lang:go": 0, "file:docs": 0, "kraken file:main": 0,
		"kraken or file:main": 2, "(kraken file:bin) or nothing": 2, "sym:kraken": 2, "lang:skipped": 0,
	} {
		r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: query})
		if err != nil || r.Stats.FilesNotSearched != want {
			t.Errorf("%s: %d files not searched, %v, want %d", query, r.Stats.FilesNotSearched, err, want)
		}
	}
}

// The cached count of unsearched files only holds for the same filters, until something changes.
func TestUnsearchedFiles_cachedCountEndsWithAChange(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "app")
	large := strings.Repeat("nothing here\n", 200)
	repo := nodetest.NewRepo(t, dir, map[string]string{"main.go": "package main // a kraken\n", "large.txt": large})
	repo.Git("branch", "older")
	repo.Commit(map[string]string{"larger.txt": large + large})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"settings": {"maxFileSize": 1000, "reindexIntervalMs": 200, "reindexRepoPollingIntervalMs": 20}, "connections": {"app": {"type": "git", "url": "file://%s", "revisions": {"branches": ["older"]}}}}`, dir)})
	n.WaitIndexed(1)

	count := func(query string) int {
		t.Helper()
		r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		return r.Stats.FilesNotSearched
	}
	listed := func(req search.GrepRequest) int {
		t.Helper()
		req.Pattern = "kraken"
		r, err := n.Search.Grep(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r.Coverage.Gap(coverage.NameOnly).Count
	}
	for _, c := range []struct {
		query string
		want  int
	}{{"kraken", 2}, {"sea", 2}, {"kraken rev:older", 1}, {"sea", 2}, {"kraken rev:none", 0}, {"sea file:larger", 1}, {"kraken", 2}} {
		if got := count(c.query); got != c.want {
			t.Errorf("%s: %d files not searched, want %d", c.query, got, c.want)
		}
	}
	for range 2 {
		all, larger, none := listed(search.GrepRequest{}), listed(search.GrepRequest{Paths: paths.Filter{Include: []string{"larger*"}}}), listed(search.GrepRequest{Paths: paths.Filter{Include: []string{"*.go"}}})
		if all != 2 || larger != 1 || none != 0 {
			t.Errorf("of all, of one and of no large file %d, %d and %d were not searched", all, larger, none)
		}
	}

	repo.Commit(map[string]string{"largest.txt": large + large + large})
	n.Wait("the file that was pushed", func() error {
		if got := count("kraken"); got != 3 {
			return fmt.Errorf("%d files not searched, want 3", got)
		}
		return nil
	})
	if got := listed(search.GrepRequest{}); got != 3 {
		t.Errorf("a grep after the push: %d files not searched, want 3", got)
	}
	if got := count("kraken rev:older"); got != 1 {
		t.Errorf("an older revision: %d files not searched, want 1", got)
	}
}

// An answer below all matches says that there are more, whether files come from the index or from
// the mirror.
func TestGrep_saysWhetherMoreLinesMatch(t *testing.T) {
	t.Parallel()
	small, large := "nothing\n", strings.Repeat("nothing here\n", 200)
	dir, connections := t.TempDir(), []string{}
	for i, c := range [][]string{{large, large, large}, {large, large, small}, {large, small, small}, {small, small, small}} {
		repo := filepath.Join(dir, fmt.Sprint("large", 3-i))
		nodetest.NewRepo(t, repo, map[string]string{"a.txt": c[0], "b.txt": c[1], "c.txt": c[2]})
		connections = append(connections, fmt.Sprintf(`"c%d": {"type": "git", "url": "file://%s"}`, i, repo))
	}
	n := nodetest.Start(t, nodetest.Config{File: `{"settings": {"maxFileSize": 1000}, "connections": {` + strings.Join(connections, ", ") + `}}`})
	n.WaitIndexed(4)

	for i := range 4 {
		for limit := 1; limit <= 4; limit++ {
			for _, counts := range []bool{false, true} {
				r, err := n.Search.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "nothing", Repo: fmt.Sprint("local/large", i), Limit: limit, Counts: counts})
				if err != nil || len(r.Files) != min(limit, 3) || r.Coverage.Complete() != (limit >= 3) {
					t.Errorf("limit %d of 3 files, of which %d are large (counts: %v): %+v, %v", limit, i, counts, r, err)
				}
			}
		}
	}
}

func TestGrep_readsFilesIndexedOnlyByName(t *testing.T) {
	t.Parallel()
	n := kept(t)
	grep := func(req search.GrepRequest) *search.GrepResponse {
		t.Helper()
		req.Pattern = cmp.Or(req.Pattern, "kraken")
		r, err := n.Search.Grep(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := grep(search.GrepRequest{Repo: "local/app"}); len(r.Files) != 2 || r.Coverage.Gap(coverage.NameOnly).Count != 0 {
		t.Errorf("one repository: %+v", r)
	}
	if r := grep(search.GrepRequest{}); len(r.Files) != 1 || r.Coverage.Gap(coverage.NameOnly).Count != 1 || r.Coverage.Gap(coverage.NameOnly).Files[0].Path != "docs/large.txt" {
		t.Errorf("all repositories: %+v", r)
	}
	if r := grep(search.GrepRequest{Paths: paths.Filter{Include: []string{"*.go"}}}); r.Coverage.Gap(coverage.NameOnly).Count != 0 {
		t.Errorf("out of reach: %+v", r)
	}
	if r := grep(search.GrepRequest{Repo: "local/app", Counts: true, Ref: "HEAD~0"}); len(r.Files) != 2 || r.Matches != 2 {
		t.Errorf("a commit by its name: %+v", r)
	}

	// The large file was read once for both patterns; a pattern that it lacks needs no read.
	if r := grep(search.GrepRequest{Repo: "local/app", Pattern: "octopus"}); len(r.Files) != 0 || r.Coverage.Gap(coverage.NameOnly).Count != 0 {
		t.Errorf("what no file has: %+v", r)
	}
	if k := n.Node.Browse.KeptFiles(); k.Read != 1 || k.Remembered != 1 || k.Sketched != 1 || k.Bytes == 0 {
		t.Errorf("%+v", k)
	}
}

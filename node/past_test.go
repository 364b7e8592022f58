package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// placesOf returns the matches of an answer, file by file.
func placesOf(r *search.Response) (all []string) {
	for _, f := range r.Files {
		for _, c := range f.Chunks {
			for _, m := range c.Ranges {
				all = append(all, fmt.Sprintf("%s:%s:%d", f.Repository, f.Path, m.Start.Line))
			}
		}
		if len(f.Chunks) == 0 {
			all = append(all, f.Repository+":"+f.Path)
		}
	}
	slices.Sort(all)
	return all
}

// emptyRepo makes a repository without commits.
func emptyRepo(t *testing.T, dir string) *nodetest.Repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := nodetest.OpenRepo(t, dir)
	r.Git("init", "-q", "-b", "main")
	return r
}

// A search of an unindexed commit or a date finds the same as in an indexed one. Files equal to
// indexed ones come from the index, the others from git.
func TestSearch_findsTextAtAnyCommitAndDate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(root, "app"), map[string]string{
		"same.go": "package kraken\n", "changed.go": "package kraken\n\nvar kraken = 1\n", "gone.go": "package kraken\n", "a+b.txt": "kraken\n",
	})
	old := app.Git("rev-parse", "HEAD")
	app.Git("rm", "-q", "gone.go")
	app.Commit(map[string]string{"changed.go": "package other\n", "a+b.txt": "whale\n", "new.go": "package kraken\n"})
	nodetest.NewRepo(t, filepath.Join(root, "lib"), map[string]string{"lib.go": "package kraken\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(root)})
	n.WaitIndexed(2)
	find := func(req search.Request) *search.Response {
		t.Helper()
		r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatalf("%s: %v", req.Query, err)
		}
		return r
	}

	// The same words as in an index of the commit.
	before := []string{"local/app:a+b.txt:1", "local/app:changed.go:1", "local/app:changed.go:3", "local/app:gone.go:1", "local/app:same.go:1"}
	for _, rev := range []string{old, old[:9]} {
		r := find(search.Request{Query: "kraken rev:" + rev})
		want(t, placesOf(r), before...)
		if !r.Coverage.Exhaustive() || r.Stats.TotalMatches != 5 || r.Stats.ActualMatches != 5 || r.Stats.Files != 4 {
			t.Errorf("rev:%s: exhaustive %t, %+v", rev, r.Coverage.Exhaustive(), r.Stats)
		}
		if len(r.Past) != 1 || r.Past[0].Commit != old || r.Past[0].Read != 3 || r.Past[0].Beside != "HEAD" {
			t.Errorf("what came from where: %+v", r.Past)
		}
		for _, f := range r.Files {
			if !slices.Equal(f.Branches, []string{old}) || !strings.Contains(f.WebURL, "@"+old+"/") {
				t.Errorf("%s is at %v, %s", f.Path, f.Branches, f.WebURL)
			}
		}
	}

	// A revision that no repository has is reported; one that some repository has is not.
	for query, unknown := range map[string]string{
		"kraken rev:nope": "nope", "kraken rev:nope*": "nope*", "repo:lib kraken rev:" + old[:9]: old[:9], "kraken rev:" + old: "", "kraken": "", "kraken rev:main": "", "nothing rev:main": "", "kraken rev:*": "", "repo:nowhere rev:nope": "",
	} {
		if got := find(search.Request{Query: query}).Stats.UnknownRevision; got != unknown {
			t.Errorf("%s: the revision %q is unknown, want %q", query, got, unknown)
		}
	}

	// Filters, limits, counts, listings and streams work as in other searches.
	want(t, placesOf(find(search.Request{Query: `kraken lang:go -file:changed rev:` + old})), "local/app:gone.go:1", "local/app:same.go:1")
	want(t, placesOf(find(search.Request{Query: `(kraken or other) file:^a\+b rev:` + old})), "local/app:a+b.txt:1")
	want(t, placesOf(find(search.Request{Query: "type:file kraken rev:" + old})), "local/app:a+b.txt", "local/app:changed.go", "local/app:gone.go", "local/app:same.go")
	if r := find(search.Request{Query: "kraken count:all rev:" + old, Matches: 2}); r.Coverage.Exhaustive() || len(placesOf(r)) != 2 || r.Stats.TotalMatches != 5 || r.Stats.Files != 4 {
		t.Errorf("two of all: %v, %+v", placesOf(r), r.Stats)
	}
	if r := find(search.Request{Query: "type:repo kraken rev:" + old}); len(r.Repositories) != 1 || r.Repositories[0].Name != "local/app" {
		t.Errorf("repositories: %+v", r.Repositories)
	}
	var streamed search.Response
	sum, err := n.Search.StreamSearch(t.Context(), catalog.Operator(), search.Request{Query: "kraken rev:" + old}, func(c *search.Chunk) error {
		streamed.Files = append(streamed.Files, c.Files...)
		return nil
	})
	if err != nil || !sum.Coverage.Exhaustive() || sum.Stats.TotalMatches != 5 || len(sum.Past) != 1 {
		t.Errorf("stream: %+v, %v", sum, err)
	}
	want(t, placesOf(&streamed), before...)

	// An indexed commit is only searched in the index; an unknown one finds nothing.
	if r := find(search.Request{Query: "kraken rev:" + app.Git("rev-parse", "HEAD")}); len(r.Past) != 0 || len(r.Files) != 2 {
		t.Errorf("an indexed commit: %+v", r)
	}
	if r := find(search.Request{Query: "kraken rev:deadbeef"}); len(r.Past) != 0 || len(r.Files) != 0 {
		t.Errorf("no commit: %+v", r)
	}
}

func TestSearch_aDateMeansACommitOfEachRepository(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	day := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2020, month, day, hour, minute, 0, 0, time.UTC)
	}
	app, lib := emptyRepo(t, filepath.Join(root, "app")), emptyRepo(t, filepath.Join(root, "lib"))
	app.CommitAs("Ada", day(1, 10, 12, 0), "one", map[string]string{"a.txt": "walrus\n"})
	app.CommitAs("Ada", day(3, 1, 0, 0), "two", map[string]string{"a.txt": "narwhal\n"})
	app.CommitAs("Ada", day(3, 5, 23, 59), "three", map[string]string{"b.txt": "walrus\n"})
	lib.CommitAs("Ada", day(2, 1, 0, 0), "one", map[string]string{"lib.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(root)})
	n.WaitIndexed(2)

	for query, places := range map[string][]string{
		"walrus at:2020-01-31":                         {"local/app:a.txt:1"},
		"walrus at:2020-02":                            {"local/app:a.txt:1", "local/lib:lib.txt:1"},
		"walrus at:2020-02-29T23:59:59Z":               {"local/app:a.txt:1", "local/lib:lib.txt:1"},
		"walrus at:2020-03-01":                         {"local/lib:lib.txt:1"},
		"walrus at:2020-03-05":                         {"local/app:b.txt:1", "local/lib:lib.txt:1"},
		"walrus at:2020-03-05T23:58:00Z repo:app":      nil,
		"(walrus or narwhal) at:2020-03-02 repo:app":   {"local/app:a.txt:1"},
		"walrus repo:app rev:main at:2020-01-31T00:00": {"local/app:a.txt:1"},
	} {
		r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: query})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := placesOf(r); !slices.Equal(got, places) || !r.Coverage.Exhaustive() {
			t.Errorf("%s finds %v, want %v; exhaustive %t", query, got, places, r.Coverage.Exhaustive())
		}
	}

	// A ref of a tool or a page may have a date too.
	g, err := n.Search.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "al", Repo: "local/app", Ref: "main@{2020-01-31}"})
	if err != nil || len(g.Files) != 1 || string(g.Files[0].Lines[0].Text) != "walrus" {
		t.Errorf("grep of a day: %+v, %v", g, err)
	}
	src, err := n.Browse.Source(t.Context(), catalog.Operator(), browse.SourceRequest{Repo: "local/app", Path: "a.txt", Ref: "@{2020-03-01}"})
	if err != nil || string(src.Content) != "narwhal\n" {
		t.Errorf("a file of a day: %+v, %v", src, err)
	}

	// A query that does not allow a date is refused with the reason.
	for query, word := range map[string]string{
		"walrus at:2019-01-01":                 "nothing was committed by",
		"walrus at:2020-02 rev:*":              "several",
		"(a rev:main) or (b rev:x) at:2020-02": "one revision",
		"walrus at:soon":                       "a date after at:",
		"walrus -at:2020-02":                   "without a minus",
	} {
		_, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: query})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// If a search would read too much from git, it is refused with advice.
func TestSearch_refusesUnindexedCommitsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{}
	for i := range 21 {
		files[fmt.Sprintf("f%d.txt", i)] = fmt.Sprintf("walrus %d\n", i)
	}
	app := nodetest.NewRepo(t, filepath.Join(root, "app"), files)

	// 21,000 paths out of 21 blobs: each directory has ten times the one before.
	for range 3 {
		tree := app.Git("write-tree")
		app.Git("read-tree", "--empty")
		for i := range 10 {
			app.Git("read-tree", fmt.Sprintf("--prefix=d%d/", i), tree)
		}
	}
	app.Git("commit", "-qm", "many")
	old := app.Git("rev-parse", "HEAD")
	for path := range files {
		files[path] = "" // deleted
	}
	files["a.txt"] = "walrus\n"
	app.Commit(files)

	n := nodetest.Start(t, nodetest.Config{File: still(root)})
	n.WaitIndexed(1)
	_, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "walrus rev:" + old})
	if !errors.Is(err, call.ErrTooLarge) || !strings.Contains(err.Error(), "21000 files") || !strings.Contains(err.Error(), "file:") {
		t.Errorf("all of it: %v", err)
	}
	r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "walrus file:^d3/ count:all rev:" + old})
	if err != nil || r.Stats.Files != 2100 || r.Past[0].Read != 2100 || r.Past[0].Beside != "" {
		t.Errorf("a directory: %v, %v", err, r)
	}
}

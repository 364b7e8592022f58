package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// The answer counts the shown files that have all words, without files beyond the limit.
func TestRankedSearch_countsShownFilesWithAllWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := strings.Repeat("filler\n", 200)
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{
		"park/worker.go": "package park\n\n// parkWorker parks a worker.\nfunc parkWorker() {}\n",
		"a.txt":          "park\n" + far + "worker\n" + far + "moor\n",
		"b.txt":          "moor\n" + far + "park\n" + far + "worker\n",
	})
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"all": {"type": "git", "url": "file://` + dir + `/*"}}}`})
	n.WaitIndexed(1)

	for limit := 1; limit <= 3; limit++ {
		r, err := n.Search.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: "park worker moor", Limit: limit})
		if err != nil || len(r.Files) != limit {
			t.Fatalf("%+v, %v", r, err)
		}
		if first := r.Files[0]; first.Path != "park/worker.go" || first.Words != 2 {
			t.Fatalf("the first is %+v", first)
		}
		if r.Whole != limit-1 {
			t.Errorf("with a limit of %d, %d files are said to have all words", limit, r.Whole)
		}
	}
}

// Files with rare words come first, and those of them that have the common words, too, before the others.
func TestRankedSearch_filesWithRareWordsComeFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"park/worker.go": "package x\n"}
	for i := range 1300 {
		// More files than the limit have only the rare word.
		text := "park worker"
		switch {
		case i < 200:
			text = "moor"
		case i == 200:
			text = "moor\npark"
		case i == 201:
			text = "moor\npark worker"
		case i == 202:
			text = "harbour"
		}
		files[fmt.Sprintf("pkg/%04d.txt", i)] = fmt.Sprintf("%s\n%d\n", text, i)
	}
	nodetest.NewRepo(t, filepath.Join(dir, "app"), files)
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"all": {"type": "git", "url": "file://` + dir + `/*"}}}`})
	n.WaitIndexed(1)

	for query, want := range map[string]string{
		"worker park moor":         "pkg/0201.txt pkg/0200.txt",
		"park moor harbour worker": "pkg/0202.txt pkg/0201.txt pkg/0200.txt", // only one file has harbour
		"park worker":              "park/worker.go",
		"worker moor absent":       "pkg/0201.txt",
	} {
		r, err := n.Search.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: query, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Coverage.Worst() != "" || strings.Contains(query, "absent") != slices.Equal(r.Missing, []string{"absent"}) {
			t.Errorf("%s: cut %+v, missing %q", query, r.Coverage, r.Missing)
		}

		var got []string
		for _, f := range r.Files {
			got = append(got, f.Path)
		}
		if !strings.HasPrefix(strings.Join(got, " "), want) {
			t.Errorf("%s: %q, want %s first", query, got, want)
		}
	}
}

// The postings of more files than are read allow a word that only one file has, which ranks last by them.
func TestRankedSearch_findsTheFileThatThePostingsHide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"testdata/x.txt": "moor\n"}
	for i := range 120 {
		files[fmt.Sprintf("pkg/%03d.go", i)] = fmt.Sprintf("moo door %d\n", i)
	}
	nodetest.NewRepo(t, filepath.Join(dir, "app"), files)
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"all": {"type": "git", "url": "file://` + dir + `/*"}}}`})
	n.WaitIndexed(1)

	for query, want := range map[string]string{"moor": "testdata/x.txt", "moor door": "pkg/000.go"} {
		r, err := n.Search.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: query, Limit: 10})
		if err != nil || len(r.Files) == 0 || r.Files[0].Path != want || len(r.Files[0].Lines) == 0 || len(r.Missing) > 0 {
			t.Errorf("%s: %+v, %v", query, r, err)
		}
	}

	r, err := n.Search.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: "moodo", Limit: 10})
	if err != nil || len(r.Files) != 0 || !slices.Equal(r.Missing, []string{"moodo"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

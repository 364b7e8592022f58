package browse

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// A file whose symbols could not be found differs from a file without symbols.
func TestOutline_saysIfSymbolsAreUnknown(t *testing.T) {
	t.Parallel()
	pool, err := symbol.Open(t.Context(), symbol.Options{Processes: 1, MaxSize: 50})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(pool.Close)

	long := append([]byte("package b\n"), bytes.Repeat([]byte("\n"), 50)...)
	texts := []symbol.File{
		{Path: "a.go", Language: "Go", Content: []byte("package a\n")},
		{Path: "long.go", Language: "Go", Content: long},
		{Path: "long.txt", Language: "Text", Content: long},
		{Path: "empty.go", Language: "Go"},
	}
	out := &OutlineResponse{}
	for _, f := range texts {
		out.Files = append(out.Files, OutlineFile{Path: f.Path, Unknown: true})
	}
	if err := findSymbols(t.Context(), pool, texts, out); err != nil {
		t.Fatal(err)
	}

	for _, f := range out.Files {
		if want := f.Path == "long.go"; f.Unknown != want {
			t.Errorf("%s: symbols unknown: %t, want %t", f.Path, f.Unknown, want)
		}
	}
	gap := out.Coverage().Gap(coverage.Symbols)
	if out.Coverage().Complete() || gap.Count != 1 || gap.Files[0].Path != "long.go" {
		t.Errorf("the coverage is %+v", out.Coverage())
	}
}

// If a file is too large for ctags, its first part still has symbols.
func TestOutline_ofATooLargeFileHasItsFirstPart(t *testing.T) {
	t.Parallel()
	dir, text := filepath.Join(t.TempDir(), "huge.git"), "package huge\n"+strings.Repeat("\n", 5<<20)
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	gitRun(t, fmt.Sprintf("commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nm\nM 100644 inline huge.go\ndata %d\n%s\n", len(text), text), "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}

	pool, err := symbol.Open(t.Context(), symbol.Options{Processes: 1})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(pool.Close)
	s := &site{mirror: m, outlines: pool, repo: &catalog.Repo{ID: 1, Name: "huge", Revisions: []catalog.Revision{{Name: "HEAD"}}}}

	out, err := answerOutline(t.Context(), s, OutlineRequest{Paths: []string{"huge.go"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Files) != 1 || !out.Files[0].Unknown || out.Files[0].Symbols != nil {
		t.Errorf("the outline is %+v", out.Files)
	}
}

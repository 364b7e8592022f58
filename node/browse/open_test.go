package browse

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lex"
)

// A part of a file and a line found in a mirror come with what the lines before them leave open.
func TestOpenComments_areToldForPartsAndFoundLines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	const text = "x = 1\n\"\"\"\nneedle\n\"\"\"\r\nneedle\n"
	gitRun(t, "commit refs/heads/main\ncommitter Ann <ann@example.org> 1700000000 +0000\ndata 5\nBegin\nM 100644 inline a.py\ndata "+strconv.Itoa(len(text))+"\n"+text+"\n\n", "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}}}}

	in := lex.For("Python").After([]byte("\"\"\"\n"), 0)
	open := []lex.State{0, 0, in, in, 0} // by line
	for i, want := range open {
		src, err := ask(t, s, sourceOperation, SourceRequest{Path: "a.py", FirstLine: i + 1, Lines: 1})
		if err != nil || src.Open != want || src.Language != "Python" {
			t.Errorf("from line %d on: open is %#x in %s, want %#x, %v", i+1, src.Open, src.Language, want, err)
		}
	}
	for around := range 3 {
		found, err := ask(t, s, scanOperation, ScanRequest{Pattern: "needle", Limit: 9, Context: around, Lexed: true})
		if err != nil || len(found.Files) != 1 || len(found.Files[0].Lines) != []int{2, 4, 5}[around] {
			t.Fatalf("%d lines around: %+v, %v", around, found, err)
		}
		for _, l := range found.Files[0].Lines {
			if l.Open != open[l.Number-1] {
				t.Errorf("%d lines around, line %d: open is %#x, want %#x", around, l.Number, l.Open, open[l.Number-1])
			}
		}
	}
}

package browse

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// A file with a byte order mark is text in every operation, and the mark does not belong to a
// line.
func TestByteOrderMark_isNoPartOfTheText(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	files := []struct{ path, encoding, bytes string }{
		{"le.py", "utf-16le", "\xff\xfed\x00e\x00f\x00 \x00\xe9\x00(\x00)\x00:\x00\n\x00 \x00x\x00\n\x00"},
		{"be.py", "utf-16be", "\xfe\xff\x00d\x00e\x00f\x00 \x00\xe9\x00(\x00)\x00:\x00\n\x00 \x00x\x00\n"},
		{"mark.py", "", "\xef\xbb\xbfdef é():\n x\n"},
	}
	in := "commit refs/heads/main\ncommitter Ann <ann@example.org> 1700000000 +0000\ndata 5\nBegin\n"
	for _, f := range files {
		in += fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", f.path, len(f.bytes), f.bytes)
	}
	gitRun(t, in+"\n", "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}}}}

	const text = "def é():\n x\n"
	for _, f := range files {
		src, err := ask(t, s, sourceOperation, SourceRequest{Path: f.path})
		if err != nil || string(src.Content) != text || src.Encoding != f.encoding || src.Binary || src.Total != 2 || int(src.Size) != len(f.bytes) {
			t.Errorf("%s: source %+v, %v", f.path, src, err)
		}
		raw, err := ask(t, s, sourceOperation, SourceRequest{Path: f.path, Raw: true})
		if err != nil || string(raw.Content) != f.bytes || raw.Encoding != f.encoding || raw.Binary {
			t.Errorf("%s: raw %+v, %v", f.path, raw, err)
		}
		lines, err := ask(t, s, readFileOperation, ReadFileRequest{Path: f.path, Offset: 1, Limit: 9})
		if err != nil || len(lines.Lines) != 2 || string(lines.Lines[0]) != "def é():" || lines.Encoding != f.encoding || lines.Total != 2 {
			t.Errorf("%s: lines %+v, %v", f.path, lines, err)
		}
		blame, err := ask(t, s, blameOperation, BlameRequest{Path: f.path})
		if err != nil || len(blame.Ranges) != 1 || blame.Ranges[0].LineCount != 2 {
			t.Errorf("%s: blame %+v, %v", f.path, blame, err)
		}
	}

	// `^` matches after the mark, and the shown line does not have it.
	found, err := ask(t, s, scanOperation, ScanRequest{Pattern: `^def é\(`, Limit: 9})
	if err != nil || len(found.Files) != len(files) {
		t.Fatalf("scan %+v, %v", found, err)
	}
	for _, f := range found.Files {
		if !slices.ContainsFunc(f.Lines, func(l Line) bool { return l.Number == 1 && string(l.Text) == "def é():" }) {
			t.Errorf("scan of %s: %+v", f.Path, f.Lines)
		}
	}
}

package browse

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/git"
)

// The path of a submodule exists and is no file. The error says so, and does not suggest the same
// path.
func TestSubmodule_readErrorSaysThatItIsOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	other := strings.Repeat("ab", 20)
	gitRun(t, "commit refs/heads/main\ncommitter Ann <a@example.org> 1700000000 +0000\ndata 2\nm\nM 160000 "+other+" sub/alpha\n\n", "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}}}}

	for _, path := range []string{"sub/alpha", "sub/alpha/main.go"} {
		_, err := ask(t, s, sourceOperation, SourceRequest{Path: path})
		if !errors.Is(err, call.ErrFileNotFound) || strings.Contains(err.Error(), "did you mean \""+path) {
			t.Errorf("%s: %v", path, err)
		}
		if path == "sub/alpha" && (err == nil || !strings.Contains(err.Error(), "is a submodule: another repository at commit "+other[:12])) {
			t.Errorf("%s: %v", path, err)
		}
	}

	// It has no entries either.
	for name, read := range map[string]func() error{
		"list_tree": func() error {
			_, err := ask(t, s, listTreeOperation, ListTreeRequest{Path: "sub/alpha", Depth: 1, MaxEntries: 10})
			return err
		},
		"last_commits": func() error {
			_, err := ask(t, s, lastCommitsOperation, LastCommitsRequest{Path: "sub/alpha"})
			return err
		},
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "is a submodule: another repository at commit "+other[:12]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

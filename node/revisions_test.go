package node_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestRevisionsAreFoundByTheirNames(t *testing.T) {
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

package node_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Only the service's user may read the data directory, however it was made and opened before.
func TestDataDirectory_isPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)
	n.Stop()

	// As a package or a volume makes it, or an earlier start left it.
	for _, name := range []string{"", "shards", "mirrors"} {
		if err := os.Chmod(filepath.Join(n.Dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.Start()
	n.WaitIndexed(1)

	err := filepath.WalkDir(n.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || path == n.Dir || filepath.Dir(path) != n.Dir && filepath.Base(filepath.Dir(path)) != "shards" {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path[len(n.Dir):], info.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A key cannot have the id of another key as its name, so that revoking by id is unambiguous.
func TestAPIKeyName_cannotBeTheIDOfAKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	first, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: first.Info.ID}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("a key called %s: %v", first.Info.ID, err)
	}
	if _, err := n.Keys.RevokeKey(ctx, account.Operator(), first.Info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Keys.Authenticate(ctx, first.Key); err == nil {
		t.Error("the key that was meant still works")
	}
}

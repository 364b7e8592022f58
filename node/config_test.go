package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestABadConfigurationIsRefusedAndTheOldOneStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)
	before := n.Status()

	n.Configure(`{"settings": {"maxFileSize": "big"}, "connections": {"x": {"type": "git"}}, "nonsense": 1}`)
	n.Wait("the file to be refused", func() error {
		if got := n.Status().Config.Errors; len(got) < 3 {
			return fmt.Errorf("errors %q, want one for each of the three mistakes", got)
		}
		return nil
	})
	after := n.Status()
	if after.Config.Hash != before.Config.Hash {
		t.Errorf("the configuration in force changed from %s to %s", before.Config.Hash, after.Config.Hash)
	}
	want(t, n.Find("walrus"), "local/app:a.txt")

	n.Configure(local(dir))
	n.Wait("the errors to go", func() error {
		if got := n.Status().Config.Errors; len(got) > 0 {
			return errors.New(strings.Join(got, "; "))
		}
		return nil
	})
}

func TestAKindWithoutSyncSaysSo(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"hub": {"type": "github", "repos": ["a/b"]}}}`})
	n.Wait("the connection to be unsupported", func() error {
		s := n.Status()
		if len(s.Connections) != 1 || s.Connections[0].State != "unsupported" {
			return fmt.Errorf("connections %+v", s.Connections)
		}
		if !strings.Contains(s.Connections[0].Message, "not yet syncing") {
			return fmt.Errorf("message %q", s.Connections[0].Message)
		}
		return nil
	})
}

func TestDeletedFilesAreMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)
	n.Stop()
	n.RemoveAll("shards")
	n.RemoveAll("mirrors")
	n.Start()
	n.Wait("the index to be made again", found(n, "walrus", "local/app:a.txt"))
}

func TestWhatIsNewDoesNotWaitForTheNextLook(t *testing.T) {
	t.Parallel()
	rare := `{"settings": {"resyncConnectionPollingIntervalMs": 3600000, "reindexRepoPollingIntervalMs": 3600000},
		"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`
	one, two := t.TempDir(), t.TempDir()
	nodetest.NewRepo(t, filepath.Join(one, "app"), map[string]string{"a.txt": "walrus\n"})
	nodetest.NewRepo(t, filepath.Join(two, "lib"), map[string]string{"b.txt": "walrus\n"})
	nodetest.NewRepo(t, filepath.Join(two, "tool"), map[string]string{"c.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(rare, one)})
	n.WaitIndexed(1)
	n.Configure(fmt.Sprintf(rare, two))
	n.Wait("the other connection", func() error {
		for _, query := range []string{"walrus file:b", "walrus file:c"} {
			if len(n.Find(query)) != 1 {
				return fmt.Errorf("%q finds %q", query, n.Find(query))
			}
		}
		return nil
	})
}

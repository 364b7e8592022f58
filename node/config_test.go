package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestInvalidConfiguration_leavesTheOldConfigurationInForce(t *testing.T) {
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

func TestUnreachableCodeHost_isReported(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"hub": {"type": "github", "url": "http://127.0.0.1:1", "repos": ["a/b"]}}}`})
	n.Wait("the connection to fail", func() error {
		s := n.Status()
		if len(s.Connections) != 1 || s.Connections[0].State != "failed" {
			return fmt.Errorf("connections %+v", s.Connections)
		}
		if !strings.Contains(s.Connections[0].Message, "GitHub at 127.0.0.1:1 cannot be reached") {
			return fmt.Errorf("message %q", s.Connections[0].Message)
		}
		return nil
	})
}

func TestDeletedIndexFiles_areRebuilt(t *testing.T) {
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

func TestNewRepository_isIndexedAtOnce(t *testing.T) {
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

func TestMissingConfigurationFile_stopsTheStart(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{})
	n.Stop()
	if err := os.Remove(n.File); err != nil {
		t.Fatal(err)
	}
	if err := n.TryLaunch(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a node whose configuration file is missing: %v", err)
	}
}

// It drops more than a few repositories, which needs a confirmation, and adds them again.
func TestDroppedConnection_comesBackWithoutAClone(t *testing.T) {
	t.Parallel()
	const repos = 21
	dir := t.TempDir()
	for i := range repos {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("app%02d", i)), map[string]string{"a.txt": fmt.Sprintf("walrus %d\n", i)})
	}
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(repos)

	const other = `{"connections": {"other": {"type": "git", "url": "https://git.invalid/other"}}}`
	n.Configure(other)
	n.Wait("the file to be held", func() error {
		s := n.Status()
		if len(s.Config.Errors) != 1 || !strings.Contains(s.Config.Errors[0], "let go of 21 of 21 repositories") || !s.Config.Differs {
			return fmt.Errorf("%+v", s.Config)
		}
		return nil
	})
	if got := len(n.Find("walrus")); got != repos {
		t.Fatalf("%d repositories are found while the change is held", got)
	}
	apply := func(text string, accept bool) error {
		_, err := n.Config.ApplyConfig(context.Background(), account.Operator(), configure.ApplyConfigRequest{Text: []byte(text), Accept: accept})
		return err
	}
	if err := apply(other, false); !errors.Is(err, call.ErrHeld) || !strings.Contains(err.Error(), "--accept") {
		t.Fatalf("applied without a word: %v", err)
	}
	before, mirrors := generations(n), mirrorTimes(t, n.Dir)
	if err := apply("{}", true); err != nil {
		t.Fatal(err)
	}
	if got := n.Find("walrus"); len(got) != 0 {
		t.Errorf("after it was accepted %d repositories are found", len(got))
	}

	if err := apply(local(dir), false); err != nil {
		t.Fatal(err)
	}
	n.WaitIndexed(repos)
	if got := len(n.Find("walrus")); got != repos {
		t.Errorf("%d repositories are found after they came back", got)
	}
	if after := generations(n); !maps.Equal(before, after) {
		t.Errorf("they were indexed anew: generations %v, before %v", after, before)
	}
	if after := mirrorTimes(t, n.Dir); !maps.Equal(mirrors, after) {
		t.Error("they were cloned anew")
	}
}

// generations returns the generation of each repository, by name and number.
func generations(n *nodetest.Node) map[string]uint64 {
	out := map[string]uint64{}
	for r := range n.View().Repos() {
		out[fmt.Sprint(r.Name, r.ID)] = r.Generation
	}
	return out
}

// mirrorTimes returns when each mirror's object directory was made.
func mirrorTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	heads, err := filepath.Glob(filepath.Join(dir, "mirrors", "*", "*", "HEAD"))
	if err != nil || len(heads) == 0 {
		heads, err = filepath.Glob(filepath.Join(dir, "mirrors", "*", "HEAD"))
	}
	if err != nil || len(heads) == 0 {
		t.Fatalf("no mirrors: %v", err)
	}
	for _, file := range heads {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		out[file] = info.ModTime()
	}
	return out
}

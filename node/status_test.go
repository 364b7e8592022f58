package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestStatus_reportsDiskUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)
	before := int64(0)
	n.Wait("the size of the mirror", func() error {
		if before = n.Status().Storage.MirrorBytes; before == 0 {
			return fmt.Errorf("a mirror of no bytes")
		}
		return nil
	})
	noise := make([]byte, 64<<10) // does not compress
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	app.Commit(map[string]string{"noise.bin": string(noise)})
	n.Wait("the size of the mirror after a fetch", func() error {
		if s := n.Status().Storage; s.MirrorBytes < before+int64(len(noise))/2 {
			return fmt.Errorf("%d bytes, were %d", s.MirrorBytes, before)
		}
		return nil
	})
	n.Configure(local(t.TempDir()))
	n.Wait("the mirror to go", func() error {
		if s := n.Status().Storage; s.MirrorBytes != 0 || s.Quarantined != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

func TestDamagedIndexFile_isRebuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)
	files := n.LiveFiles()
	n.Stop()
	damaged := 0
	for _, name := range files {
		if filepath.Ext(name) != ".shard" {
			continue
		}
		path := filepath.Join(n.Dir, "shards", name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[0] ^= 0x40 // of the header, which a start checks
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if damaged == 0 {
		t.Fatalf("no shard among %q", files)
	}
	n.Start()
	n.Wait("the file to be put aside", func() error {
		if s := n.Status().Storage; s.Quarantined != damaged {
			return fmt.Errorf("%+v, want %d put aside", s, damaged)
		}
		return nil
	})
	n.Wait("the index to be made again", func() error {
		if got := n.Find("walrus"); !slices.Equal(got, []string{"local/app:a.txt"}) {
			return fmt.Errorf("found %q; %+v", got, n.Status().Storage)
		}
		return nil
	})
	complete(t, n, "walrus")
}

// Only owners see the machines of a cluster: addresses and properties.
func TestStatus_showsMachinesOnlyToOwners(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{File: local(t.TempDir())})
	for _, c := range []struct {
		who  catalog.Viewer
		told bool
	}{
		{catalog.Guest(), false},
		{catalog.Viewer{Role: catalog.RoleMember, Name: "m"}, false},
		{catalog.Operator(), true},
	} {
		s, err := n.Node.Status(t.Context(), c.who)
		if err != nil || len(s.Members) != 1 || s.Members[0].Health != "alive" {
			t.Fatalf("%s is told %+v, %v", c.who.Name, s, err)
		}
		m := s.Members[0]
		if c.told != (m.Address != "") || c.told != (m.Zone != "") || c.told != (s.Storage != node.StorageStatus{}) {
			t.Errorf("%s is told %+v, %+v; want %t", c.who.Name, m, s.Storage, c.told)
		}
	}
}

// Only owners see errors of jobs, because they contain names of connections and paths.
func TestStatus_showsJobErrorsOnlyToOwners(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"secret": {"type": "git", "url": "file:///there/is/no/such/place"}}}`})
	n.Wait("a failed sync", func() error {
		s, err := n.Node.Status(t.Context(), catalog.Operator())
		if err == nil && len(s.Failed) == 0 {
			err = errors.New("none yet")
		}
		return err
	})
	if s, err := n.Node.Status(t.Context(), catalog.Operator()); err != nil || s.Jobs.Failed+s.Jobs.Retrying != len(s.Failed) {
		t.Errorf("%+v failed jobs are counted, and %d listed, %v", s.Jobs, len(s.Failed), err)
	}
	for _, v := range []catalog.Viewer{catalog.Guest(), {Role: catalog.RoleMember, Name: "m"}} {
		s, err := n.Node.Status(t.Context(), v)
		if err != nil || len(s.Failed)+len(s.Running)+len(s.Connections) > 0 {
			t.Errorf("%s is told %+v, %v", v.Name, s, err)
		}
	}
}

// A remote without branches is reported as an empty repository.
func TestStatus_aRemoteWithoutCommitsIsAnEmptyRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(1)

	empty := func() string {
		r, err := n.Browse.Repos(context.Background(), catalog.Operator(), browse.ReposRequest{})
		if err != nil || len(r.Repos) != 1 {
			t.Fatalf("repositories: %+v, %v", r, err)
		}
		return fmt.Sprint(r.Repos[0].Empty, n.Status().Warnings)
	}
	if got := empty(); got != "false []" {
		t.Errorf("with a commit: %s", got)
	}

	app.Git("update-ref", "-d", "refs/heads/main")
	n.Wait("the warning", func() error {
		const want = "true [the last fetch found no branch and no tag in local/app: nothing of it is searched until its remote has a commit]"
		if got := empty(); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
}

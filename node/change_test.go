package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

func TestReindex_findsTheNewCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)
	app.Commit(map[string]string{"b.txt": "narwhal\n"})
	repos, err := n.Browse.Repos(context.Background(), catalog.Operator(), browse.ReposRequest{})
	if err != nil || len(repos.Repos) != 1 {
		t.Fatalf("repositories %+v, %v", repos, err)
	}
	req := repos.Repos[0].ID
	if _, err := n.Operate.Reindex(context.Background(), account.Owner{}, req); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("nobody may reindex: %v", err)
	}
	if _, err := n.Operate.Reindex(context.Background(), account.Operator(), req+1000); !errors.Is(err, call.ErrRepoNotFound) {
		t.Errorf("a repository that is not there: %v", err)
	}
	got, err := n.Operate.Reindex(context.Background(), account.Operator(), req)
	if err != nil || got.Name != "local/app" {
		t.Fatalf("reindex: %+v, %v", got, err)
	}
	if j, err := n.Operate.Job(context.Background(), catalog.Operator(), got.Job); err != nil || j.Kind != "index" {
		t.Errorf("the job that was told: %+v, %v", j, err)
	}
	n.Wait("the new commit", found(n, "narwhal", "local/app:b.txt"))
	want(t, n.Find("walrus"), "local/app:a.txt")
}

func TestRepositoryLookup_findsItsNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	nodetest.NewRepo(t, filepath.Join(dir, "app2"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(2)
	got, err := n.Browse.Repo(context.Background(), catalog.Operator(), "local/app")
	if err != nil || got.Name != "local/app" || got.State != browse.StateIndexed || len(got.Revisions) == 0 {
		t.Errorf("local/app: %+v, %v", got, err)
	}

	// Part of a name finds nothing, and a viewer without rights finds nothing.
	for _, of := range []struct {
		viewer catalog.Viewer
		name   string
	}{{catalog.Operator(), "local/ap"}, {catalog.Operator(), ""}, {catalog.Viewer{}, "local/app"}} {
		if got, err := n.Browse.Repo(context.Background(), of.viewer, of.name); err == nil {
			t.Errorf("%+v finds %q: %+v", of.viewer, of.name, got)
		}
	}
}

func TestPushEvent_indexesTheNewCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	nodetest.NewRepo(t, filepath.Join(dir, "lib"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(2)
	app.Commit(map[string]string{"b.txt": "narwhal\n"})
	event := operate.WebhookRequest{Connection: "local", Event: host.Event{Pushed: true, URLs: []string{"file://" + app.Dir + "/"}}}
	if got, err := n.Operate.Webhook(context.Background(), account.Operator(), event); err != nil || len(got.Repos) != 1 || got.Repos[0] != "local/app" {
		t.Fatalf("the event queues %+v, %v", got, err)
	}
	n.Wait("the new commit", found(n, "narwhal", "local/app:b.txt"))
	if _, err := n.Operate.Webhook(context.Background(), account.Operator(), operate.WebhookRequest{Connection: "other", Event: event.Event}); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("an event of an unknown connection: %v", err)
	}

	// An event for an unknown repository starts the next listing.
	late := nodetest.NewRepo(t, filepath.Join(dir, "late"), map[string]string{"c.txt": "beluga\n"})
	event.Event.URLs = []string{"file://" + late.Dir}
	if got, err := n.Operate.Webhook(context.Background(), account.Operator(), event); err != nil || len(got.Repos) != 0 {
		t.Fatalf("the event queues %+v, %v", got, err)
	}
	n.Wait("the new repository", found(n, "beluga", "local/late:c.txt"))
}

func TestDataDirectory_mayBeARelativePath(t *testing.T) {
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "src", "app"), map[string]string{"a.txt": "walrus\n"})
	t.Chdir(dir)
	n := nodetest.Start(t, nodetest.Config{File: still(filepath.Join(dir, "src")), Edit: func(o *node.Options) { o.Dir = "here/data" }})
	n.WaitIndexed(1)
	want(t, n.Find("walrus"), "local/app:a.txt")
	src, err := n.Browse.Source(context.Background(), catalog.Operator(), browse.SourceRequest{Repo: "local/app", Path: "a.txt"})
	if err != nil || string(src.Content) != "walrus\n" {
		t.Errorf("the file is %+v, %v", src, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "here", "data", "mirrors")); err != nil {
		t.Errorf("the data is elsewhere: %v", err)
	}
}

func TestUnlistedRepository_isDeleted(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	nodetest.NewRepo(t, filepath.Join(one, "app"), map[string]string{"a.txt": "walrus\n"})
	nodetest.NewRepo(t, filepath.Join(two, "lib"), map[string]string{"b.txt": "walrus\n"})
	both := `{"settings": {"repoGarbageCollectionGracePeriodMs": 100, "resyncConnectionIntervalMs": 100, "reindexRepoPollingIntervalMs": 20, "resyncConnectionPollingIntervalMs": 20},
		"connections": {"local": {"type": "git", "url": "file://%s/*"}%s}}`
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(both, one, fmt.Sprintf(`, "more": {"type": "git", "url": "file://%s/*"}`, two))})
	n.WaitIndexed(2)
	want(t, n.Find("walrus"), "local/app:a.txt", "local/lib:b.txt")
	before := disk(t, n)

	if err := os.RemoveAll(filepath.Join(two, "lib")); err != nil {
		t.Fatal(err)
	}
	n.Wait("the repository to leave", found(n, "walrus", "local/app:a.txt"))
	n.Wait("its files to go", func() error {
		if err := orphans(n); err != nil {
			return err
		}
		if now := disk(t, n); now["mirrors"] != 1 || now["shards"] >= before["shards"] {
			return fmt.Errorf("%v, were %v", now, before)
		}
		return nil
	})
}

// disk counts the index files and mirrors of a node.
func disk(t *testing.T, n *nodetest.Node) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, dir := range []string{"shards", "mirrors"} {
		list, err := os.ReadDir(filepath.Join(n.Dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.IsDir() == (dir == "mirrors") {
				count[dir]++
			}
		}
	}
	return count
}

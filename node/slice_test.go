package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// local returns a configuration with the repositories of one directory.
func local(dir string) string {
	return fmt.Sprintf(`{"settings": {"reindexIntervalMs": 200, "reindexRepoPollingIntervalMs": 20, "resyncConnectionPollingIntervalMs": 20,
		"resyncConnectionIntervalMs": 200, "repoGarbageCollectionGracePeriodMs": 50},
		"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir)
}

// unpolled is local with repositories that are listed and indexed once.
func unpolled(dir string) string {
	seldom := strings.NewReplacer(`"reindexIntervalMs": 200`, `"reindexIntervalMs": 3600000`, `"resyncConnectionIntervalMs": 200`, `"resyncConnectionIntervalMs": 3600000`)
	return seldom.Replace(local(dir))
}

func TestRepository_isListedIndexedSearchedAndDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main\n\nfunc main() { println(\"whale\") }\n"})
	nodetest.NewRepo(t, filepath.Join(dir, "lib"), map[string]string{"lib.c": "int whale(void) { return 1; }\n"})
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(2)
	want(t, n.Find("whale"), "local/app:main.go", "local/lib:lib.c")

	app.Commit(map[string]string{"main.go": "package main\n\nfunc main() { println(\"dolphin\") }\n"})
	n.Wait("the new commit", found(n, "dolphin", "local/app:main.go"))
	want(t, n.Find("whale"), "local/lib:lib.c")

	n.Configure(local(t.TempDir()))
	n.Wait("the repositories to leave", func() error {
		if s := n.Status(); s.Repos.Total != 0 || s.Storage.Shards != 0 {
			return fmt.Errorf("%+v %+v", s.Repos, s.Storage)
		}
		return nil
	})
}

func want(t *testing.T, got []string, files ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(files)
	if !slices.Equal(got, files) {
		t.Errorf("found %q, want %q", got, files)
	}
}

// found returns the condition that a query finds exactly these files.
func found(n *nodetest.Node, query string, files ...string) func() error {
	return func() error {
		got := n.Find(query)
		slices.Sort(got)
		if !slices.Equal(got, files) {
			return fmt.Errorf("%q finds %q, want %q", query, got, files)
		}
		return nil
	}
}

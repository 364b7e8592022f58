package node_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// crowd makes repositories r00, r01, ..., each with a file that has its name and the word whale.
func crowd(t *testing.T, dir string, n int) []*nodetest.Repo {
	var repos []*nodetest.Repo
	for i := range n {
		name := fmt.Sprintf("r%02d", i)
		repos = append(repos, nodetest.NewRepo(t, filepath.Join(dir, name), map[string]string{
			"main.go": fmt.Sprintf("package main // whale in %s\n", name), "same.txt": "dolphin everywhere\n",
		}))
	}
	return repos
}

// crowdFiles returns the paths of a file in each of these repositories.
func crowdFiles(n int, file string) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("local/r%02d:%s", i, file))
	}
	return out
}

// shardFiles counts the shards on a node's disk, without side files.
func shardFiles(t *testing.T, n *nodetest.Node) int {
	t.Helper()
	return len(shardNames(t, n))
}

// shardNames returns the names of the shards on a node's disk.
func shardNames(t *testing.T, n *nodetest.Node) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(n.Dir, "shards", "*.shard"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i] = filepath.Base(list[i])
	}
	return list
}

// packedInto waits until there are at most so many shards.
func packedInto(t *testing.T, n *nodetest.Node, shards int) {
	t.Helper()
	n.Wait("the small repositories to be packed", func() error {
		if got := shardFiles(t, n); got > shards {
			return fmt.Errorf("%d shards, jobs %+v, failed %+v", got, n.Status().Jobs, n.Status().Failed)
		}
		return nil
	})
}

func TestPackedIndex_keepsRepositoriesApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const count = 12
	repos := crowd(t, dir, count)
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(count)
	all := n.Results("whale")
	packedInto(t, n, 2) // the last ones may have come too late
	again := n.Results("whale")
	if len(again.Files) != count || !again.Coverage.Exhaustive() || again.Stats.ShardsRequired > 2 {
		t.Errorf("packed: %d files, %+v", len(again.Files), again.Stats)
	}
	for i := range again.Files {
		if got, was := again.Files[i], all.Files[i]; got.Repository != was.Repository || got.Path != was.Path || got.Score != was.Score || !slices.Equal(got.Branches, was.Branches) {
			t.Errorf("file %d is %+v, was %+v", i, got, was)
		}
	}
	want(t, n.Find("whale repo:r03"), "local/r03:main.go")
	want(t, n.Find("dolphin -repo:r0"), "local/r10:same.txt", "local/r11:same.txt")
	listed, err := n.Browse.Repos(context.Background(), catalog.Operator(), browse.ReposRequest{})
	if err != nil || len(listed.Repos) != count {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, r := range listed.Repos {
		if r.Documents != 2 || r.TextBytes == 0 || r.ShardBytes == 0 {
			t.Errorf("%s has %+v", r.Name, r)
		}
	}

	repos[3].Commit(map[string]string{"main.go": "package main // orca\n", "same.txt": ""})
	n.Wait("the new commit", found(n, "orca", "local/r03:main.go"))
	want(t, n.Find("whale"), slices.Delete(crowdFiles(count, "main.go"), 3, 4)...)
	want(t, n.Find("dolphin"), slices.Delete(crowdFiles(count, "same.txt"), 3, 4)...)

	if err := os.RemoveAll(repos[5].Dir); err != nil {
		t.Fatal(err)
	}
	n.Wait("a repository to leave", found(n, "whale", slices.Delete(slices.Delete(crowdFiles(count, "main.go"), 5, 6), 3, 4)...))
	n.Stop()
	n.Start()
	want(t, n.Find("whale"), slices.Delete(slices.Delete(crowdFiles(count, "main.go"), 5, 6), 3, 4)...)
}

// Deltas of many pushes are packed too.
func TestPackedIndex_includesDeltasOfManyPushes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const count = 9
	repos := crowd(t, dir, count)
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(count)
	packedInto(t, n, 1)
	for i, r := range repos {
		r.Commit(map[string]string{"new.txt": fmt.Sprintf("orca %d\n", i)})
	}
	n.Wait("the new commits", found(n, "orca", crowdFiles(count, "new.txt")...))
	packedInto(t, n, 3)
	want(t, n.Find("orca"), crowdFiles(count, "new.txt")...)
	want(t, n.Find("whale"), crowdFiles(count, "main.go")...)
	want(t, n.Find("dolphin"), crowdFiles(count, "same.txt")...)
}

// A damaged pack is set aside and its repositories are indexed again.
func TestPackedIndex_isRebuiltIfDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const count = 8
	crowd(t, dir, count)
	n := nodetest.Start(t, nodetest.Config{File: local(dir)})
	n.WaitIndexed(count)
	packedInto(t, n, 1)
	n.Stop()
	list, err := filepath.Glob(filepath.Join(n.Dir, "shards", "*.shard"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := os.Truncate(list[0], 100); err != nil {
		t.Fatal(err)
	}
	n.Start()
	n.Wait("the repositories to be back", found(n, "whale", crowdFiles(count, "main.go")...))
}

// In a fleet one node builds a pack, and the others copy it.
func TestPackedIndex_isCopiedToOtherHolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const count = 9
	crowd(t, dir, count)
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: local(dir)})
	f.Nodes[0].Wait("one pack with two copies", func() error {
		s, r := f.Nodes[0].Status(), f.Nodes[0].Results("whale")
		if s.Repos.Indexed < count || s.Placement.UnderReplicated > 0 || r.Stats.ShardsRequired != 1 {
			return fmt.Errorf("%+v, %+v, %d shards, jobs %+v", s.Repos, s.Placement, r.Stats.ShardsRequired, s.Jobs)
		}
		return nil
	})
	f.Nodes[1].Stop()
	f.Nodes[0].Wait("all to be found without the other node", func() error {
		r, err := f.Nodes[0].Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "whale"})
		if err != nil || len(r.Files) != count || !r.Coverage.Exhaustive() || r.Stats.ShardsRequired != 1 {
			return fmt.Errorf("%+v, %v", r, err)
		}
		return nil
	})
}

// A new node that needs part of a pack gets that part from a node with the pack, never all of it.
// It polls its repositories meanwhile; without news that starts no index job.
func TestNewNode_copiesOnlyItsPartOfAPackedIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const count = 24
	crowd(t, dir, count)
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: local(dir)})
	f.Nodes[0].WaitIndexed(count)
	packedInto(t, f.Nodes[0], 2) // the last ones may have come too late
	f.Nodes[0].Wait("the pack to be in both places", even(t, f.Nodes[0], count))
	old, indexed := packs(f.Nodes[0]), timesBuilt(f.Nodes[0])
	f.Add()
	newcomer := f.Nodes[2]
	newcomer.Launch()
	newcomer.WaitReady()
	newcomer.Wait("the newcomer to have its share", func() error {
		names := shardNames(t, newcomer)
		if slices.ContainsFunc(names, func(name string) bool { return old[name] }) {
			t.Fatalf("the newcomer copied the pack of all: %q", names)
		}
		if len(names) == 0 {
			return fmt.Errorf("jobs %+v, placement %+v", newcomer.Status().Jobs, newcomer.Status().Placement)
		}
		return even(t, newcomer, count)()
	})
	want(t, newcomer.Find("whale"), crowdFiles(count, "main.go")...)
	if now := timesBuilt(newcomer); !maps.Equal(now, indexed) {
		t.Errorf("repositories that nobody changed were indexed again: %v, were at %v", now, indexed)
	}
}

// packs returns the files that several repositories share.
func packs(n *nodetest.Node) map[string]bool {
	names := map[string]bool{}
	for repo := range n.View().Repos() {
		for _, s := range repo.Shards {
			if s.Pack > 0 {
				names[s.ID+".shard"] = true
			}
		}
	}
	return names
}

// timesBuilt returns how often each repository was built. A poll that failed on a busy machine
// makes a job that builds nothing.
func timesBuilt(n *nodetest.Node) map[string]uint64 {
	at := map[string]uint64{}
	for repo := range n.View().Repos() {
		at[repo.Name] = repo.Generation
	}
	return at
}

// even returns a condition that all data is in place.
func even(t *testing.T, n *nodetest.Node, repos int) func() error {
	return func() error {
		s := n.Status()
		if s.Repos.Indexed < repos || s.Placement.UnderReplicated+s.Placement.Moves > 0 || s.Jobs.Pending+s.Jobs.Running > 0 {
			return fmt.Errorf("%+v, %+v, jobs %+v", s.Repos, s.Placement, s.Jobs)
		}
		return nil
	}
}

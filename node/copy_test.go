package node_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// The shards of a large repository are on different nodes. An index job that finds nothing new
// leaves them there.
func TestIndexJob_withoutChangesCopiesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 24 {
		var text strings.Builder
		for line := range 200 {
			fmt.Fprintf(&text, "%x\n", (line+1)*(i+7)*2654435761) // hard to compress, so that the mirror is smaller
		}
		files[fmt.Sprintf("f%02d.txt", i)] = text.String()
	}
	nodetest.NewRepo(t, filepath.Join(dir, "r"), files)
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) { o.SliceBytes = 4 << 10 }})
	first := f.Nodes[0]
	first.WaitIndexed(1)
	f.Add().Launch()
	var repo *catalog.Repo
	first.Wait("two copies of each shard and no more", func() error {
		for repo = range first.View().Repos() {
		}
		files, most := 0, 0
		for _, n := range f.Nodes {
			here := shardFiles(t, n)
			files, most = files+here, max(most, here)
		}
		if files != 2*len(repo.Shards) || most == len(repo.Shards) {
			return fmt.Errorf("%d shards have %d files, %d on one node", len(repo.Shards), files, most)
		}
		return even(t, first, 1)()
	})
	first.Wait("the job to be asked for", func() error {
		_, err := first.Operate.Reindex(context.Background(), account.Operator(), uint32(repo.ID))
		return err
	})
	first.Wait("the job", func() error {
		if now := first.View().Repo(repo.ID); !now.IndexedAt.After(repo.IndexedAt) {
			return fmt.Errorf("jobs %+v", first.Status().Jobs)
		}
		return nil
	})
	if now := first.View().Repo(repo.ID); now.Generation != repo.Generation {
		t.Errorf("generation %d was copied together and published again as %d", repo.Generation, now.Generation)
	}
}

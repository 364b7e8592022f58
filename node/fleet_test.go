package node_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestThreeNodes_haveTheSameAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []string
	for i := range 6 {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": fmt.Sprintf("narwhal %d\n", i)})
		all = append(all, fmt.Sprintf("local/r%d:a.txt", i))
	}
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: local(dir)})
	f.Nodes[0].WaitIndexed(6)
	for _, n := range f.Nodes {
		n.Wait("every copy", func() error {
			if s := n.Status(); s.Placement.UnderReplicated > 0 || len(s.Members) != 3 || s.Repos.Indexed != 6 {
				return fmt.Errorf("placement %+v, repositories %+v, members %+v", s.Placement, s.Repos, s.Members)
			}
			return nil
		})
		n.Wait("the answer", found(n, "narwhal", all...))
		complete(t, n, "narwhal")
		src, err := n.Browse.Source(context.Background(), catalog.Operator(), browse.SourceRequest{Repo: "local/r3", Path: "a.txt"})
		if err != nil || string(src.Content) != "narwhal 3\n" {
			t.Errorf("a file read through %s is %+v, %v", n.ID(), src, err)
		}
	}

	f.Nodes[1].Stop()
	for _, i := range []int{0, 2} {
		got := f.Nodes[i].Find("narwhal")
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("with one node gone %d finds %q", i, got)
		}
	}
	f.Nodes[1].Start()
	f.Nodes[1].Wait("the node that came back", found(f.Nodes[1], "narwhal", all...))
}

// complete checks that an answer is exhaustive.
func complete(t *testing.T, n *nodetest.Node, query string) {
	t.Helper()
	r := n.Results(query)
	if !r.Coverage.Exhaustive() || r.Stats.ShardsAnswered != r.Stats.ShardsRequired || len(r.Cluster.ShardsMissing)+len(r.Cluster.NodesFailed) > 0 {
		t.Errorf("the answer of %s is not whole: %+v %+v", n.ID(), r.Stats, r.Cluster)
	}
}

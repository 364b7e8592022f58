package hold

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/place"
)

// The second copy of what a push adds to a pack goes to a node that has the pack.
func TestSecondCopy_goesToANodeWithMostOfTheBytes(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, oneConnection, 4)
	w.Repos("a", "r")
	pack, delta := fmt.Sprintf("%064x", 1), fmt.Sprintf("%064x", 2)
	w.Index(1, "n1", catalog.ShardRef{ID: pack, Text: 10, Bytes: 5})
	w.Target(place.GroupOf(1), "n2", "n3")
	w.Confirm("n2", catalog.ShardKey(pack))

	names := []string{pack + ".shard", delta + ".shard"}
	ask := func() string {
		return strings.Join(secondCopyNodes(w.View(), 1, names, func(string) int64 { return 10 }), " ")
	}
	if got := ask(); got != "n2 n1 n3" {
		t.Errorf("n1 and n2 have the pack, n2 and n3 should: asked are %s", got)
	}
	w.Do(&catalog.SetMemberState{ID: "n1", State: catalog.MemberDraining})
	if got := ask(); got != "n2 n3" {
		t.Errorf("n1 leaves: asked are %s", got)
	}
	names = names[1:]
	if got := ask(); got != "n2 n3" {
		t.Errorf("a file that nobody has: asked are %s", got)
	}
}

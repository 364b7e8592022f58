package node

import (
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// Snapshot writes the catalog as a file that `shoal snapshot restore` reads.
// It has the hashes of keys and the sealed secrets.
func (n *Node) Snapshot(ctx context.Context, by account.Owner, w io.Writer) error {
	// It is for bad times too: without a leader it is taken and only logged.
	if _, err := n.cluster.Propose(ctx, &catalog.NoteEvent{Action: "snapshot.taken", TargetType: "catalog", Target: n.cluster.View().ClusterID()}); err != nil {
		n.opt.Log.Warn("a snapshot of the catalog is taken, and the audit cannot be told", "by", by.Name(), "err", err)
	}
	if err := n.cluster.Snapshot(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	return nil
}

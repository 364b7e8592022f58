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
	n.noteSnapshot(ctx, by)
	if err := n.cluster.Snapshot(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	return nil
}

// noteSnapshot leaves an event where events are kept. A snapshot is for bad
// times too: without a leader it is taken and only logged.
func (n *Node) noteSnapshot(ctx context.Context, by account.Owner) {
	if n.auditRule().Off {
		return
	}
	event := &catalog.NoteEvent{Action: "snapshot.taken", TargetType: "catalog", Target: n.cluster.View().ClusterID()}
	if _, err := n.cluster.Propose(ctx, event); err != nil {
		n.opt.Log.Warn("a snapshot of the catalog is taken, and the audit cannot be told", "by", by.Name(), "err", err)
	}
}

package node

import (
	"context"
	"fmt"
	"io"
)

// Snapshot writes the catalog as a file that `shoal snapshot restore` reads.
// Owners only: it has the hashes of keys and the sealed secrets.
func (n *Node) Snapshot(ctx context.Context, v Viewer, w io.Writer) error {
	if err := owner(v); err != nil {
		return err
	}
	if err := n.cluster.Snapshot(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	return nil
}

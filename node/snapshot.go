package node

import (
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/node/account"
)

// Snapshot writes the catalog as a file that `shoal snapshot restore` reads.
// It has the hashes of keys and the sealed secrets.
func (n *Node) Snapshot(ctx context.Context, _ account.Owner, w io.Writer) error {
	if err := n.cluster.Snapshot(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	return nil
}

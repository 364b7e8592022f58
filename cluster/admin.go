package cluster

import (
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Drain makes a member give away what it holds and its roles, and take no
// more jobs. It stays a member; Undrain takes it back.
func (c *Cluster) Drain(ctx context.Context, node string) error {
	if _, err := c.Propose(ctx, &catalog.SetMemberState{ID: node, State: catalog.MemberDraining}); err != nil {
		return fmt.Errorf("drain node %s: %w", node, err)
	}
	return nil
}

// Undrain makes a member that drains an ordinary one again.
func (c *Cluster) Undrain(ctx context.Context, node string) error {
	if _, err := c.Propose(ctx, &catalog.SetMemberState{ID: node, State: catalog.MemberAlive}); err != nil {
		return fmt.Errorf("undrain node %s: %w", node, err)
	}
	return nil
}

// Remove removes a member for good: its data directory will not be let in
// again, and what it holds is forgotten.
func (c *Cluster) Remove(ctx context.Context, node string) error {
	if _, err := c.Propose(ctx, &catalog.RemoveMember{ID: node}); err != nil {
		return fmt.Errorf("remove node %s: %w", node, err)
	}
	return nil
}

// Snapshot writes the catalog as a file for Restore. With a leader it has
// all that was acknowledged before the call; without one, what this node
// knows.
func (c *Cluster) Snapshot(ctx context.Context, w io.Writer) error {
	if _, err := c.Sync(ctx); err != nil {
		c.log.Warn("the snapshot may lack the newest changes", "error", err)
	}
	return c.View().Save(w)
}

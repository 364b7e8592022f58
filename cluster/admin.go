package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Drain makes a member move its data and roles to others, and take no more jobs. It stays a member;
// Undrain reverses this. A reachable member knows it when Drain returns.
func (c *Cluster) Drain(ctx context.Context, node string) error {
	if err := c.setMemberState(ctx, node, catalog.MemberDraining); err != nil {
		return fmt.Errorf("drain node %s: %w", node, err)
	}
	return nil
}

// Undrain makes a draining member an ordinary one again. A reachable member knows it when Undrain
// returns.
func (c *Cluster) Undrain(ctx context.Context, node string) error {
	if err := c.setMemberState(ctx, node, catalog.MemberAlive); err != nil {
		return fmt.Errorf("undrain node %s: %w", node, err)
	}
	return nil
}

// setMemberState sets the state of a member, and waits until the member itself knows it.
func (c *Cluster) setMemberState(ctx context.Context, node string, state catalog.MemberState) error {
	index, err := c.Propose(ctx, &catalog.SetMemberState{ID: node, State: state})
	if err != nil {
		return err
	}

	// Load balancers ask the node itself, so it must know its new state.
	if behind := c.AwaitOn(ctx, index, node); len(behind) > 0 {
		c.env.log.Warn("the node has not confirmed that it is told whether it drains", "node", node)
	}
	return nil
}

// withdrawTime is how long a member may take to give up its vote and the lead before its removal,
// at Timing 1.
const withdrawTime = 30 * time.Second

// Remove removes a member for good: its data directory is never admitted again, and its holdings
// are deleted. A running voter first loses its vote. The other nodes stop talking to a removed
// node, so a removed voter would leave its vote unused: of two voters, the other one could then not
// even shrink the cluster.
func (c *Cluster) Remove(ctx context.Context, node string) error {
	if err := c.withdrawVote(ctx, node); err != nil {
		return fmt.Errorf("remove node %s: %w", node, err)
	}
	if _, err := c.Propose(ctx, &catalog.RemoveMember{ID: node}); err != nil {
		return fmt.Errorf("remove node %s: %w", node, err)
	}
	return nil
}

// withdrawVote drains a member, and waits until raft has taken its vote or it is not alive. If that
// takes too long, it undoes the drain.
func (c *Cluster) withdrawVote(ctx context.Context, node string) error {
	hasVote := func() bool {
		for _, m := range c.Members() {
			if m.ID == node {
				return m.Voter && m.Alive
			}
		}
		return false
	}

	if !hasVote() {
		return nil
	}

	// The leader takes the vote from a draining member as soon as possible.
	m := c.View().Member(node)
	drained := m != nil && m.State == catalog.MemberDraining
	if !drained {
		if err := c.Drain(ctx, node); err != nil {
			return err
		}
	}

	waitCtx, cancel := context.WithTimeout(ctx, c.env.scaled(withdrawTime))
	defer cancel()

	for hasVote() {
		if c.env.pause(waitCtx, c.env.scaled(voterPause)/4) {
			continue
		}

		err := errors.New("the others cannot decide without its vote: bring back or remove those that are not alive, or add a node")

		// Undo only a drain that this call began.
		if !drained {
			undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.env.scaled(withdrawTime))
			defer cancel()
			err = errors.Join(err, c.Undrain(undoCtx, node))
		}

		return err
	}
	return nil
}

// Snapshot writes the catalog as a file for Restore. With a leader it contains everything
// acknowledged before the call; without one, what this node has applied.
func (c *Cluster) Snapshot(ctx context.Context, w io.Writer) error {
	if _, err := c.Sync(ctx); err != nil {
		c.env.log.Warn("the snapshot may lack the newest changes", "error", err)
	}
	return c.View().Save(w)
}

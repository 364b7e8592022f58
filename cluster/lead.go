package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// methodLead asks the leader to hand over to another voter.
const methodLead = "cluster.lead"

// Lead makes a voter the leader, and returns when this node knows it. If the node cannot lead, the
// error is a *catalog.Refusal.
func (c *Cluster) Lead(ctx context.Context, node string) error {
	for _, m := range c.Members() {
		switch {
		case m.ID != node:
		case !m.Voter:
			return conflict("node %s has no vote, and only a voter can lead", node)
		case !m.Alive:
			return conflict("node %s does not answer", node)
		case m.State == catalog.MemberDraining:
			return conflict("node %s is being drained: take it back first", node)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, c.proposer.hold)
	defer cancel()
	leader, err := c.proposer.findLeader(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	case leader == c.self.node:
		err = c.replica.transferLead(ctx, node)
	default:
		_, err = c.network.call(ctx, leader, methodLead, []byte(node))
	}
	if err != nil {
		return conflict("node %s did not take the lead, try again: %v", node, err)
	}

	for c.Leader() != node {
		if !c.env.pause(ctx, retryPause) {
			return fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
		}
	}
	return nil
}

// serveLead hands the lead to a voter.
func (c *Cluster) serveLead(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	return nil, c.replica.transferLead(ctx, string(in))
}

// transferLead hands the lead from this node to a voter.
func (r *replica) transferLead(ctx context.Context, node string) error {
	if r.leader() == node {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	return waitFuture(ctx, r.raft.LeadershipTransferToServer(raft.ServerID(node), raft.ServerAddress(node)))
}

// handOver hands the lead to a voter that stays, so that a restart costs no election timeout.
func (e *electorate) handOver() {
	f := e.replica.raft.GetConfiguration()
	if e.replica.raft.State() != raft.Leader || f.Error() != nil {
		return
	}

	// Use a new electorate: the running one may still use its own observations.
	now := &electorate{env: e.env, network: e.network, replica: e.replica, healthy: map[string]time.Time{}, dead: map[string]time.Time{}}
	heir := newVoterPlan(now.candidates(f.Configuration().Servers), 0, 0).nextLeader()
	if heir == nil {
		return
	}
	if err := e.replica.transferLead(context.Background(), heir.id); err != nil {
		e.log.Info("leadership was not handed over", "peer", heir.id, "error", err)
	}
}

func conflict(format string, args ...any) error {
	return &catalog.Refusal{Code: catalog.Conflict, Reason: fmt.Sprintf(format, args...)}
}

package node_test

import (
	"fmt"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Any node reports who votes and how far each node is, and which nodes are down.
func TestRaftStatus_isReportedByEveryNode(t *testing.T) {
	t.Parallel()
	fleet := nodetest.StartFleet(t, 3, nodetest.Config{File: `{}`})
	ask := func(n *nodetest.Node) *node.RaftResponse {
		r, err := n.Raft(t.Context(), account.Operator())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	for _, n := range fleet.Nodes {
		n.Wait("all of them to vote and to be told of", func() error {
			r := ask(n)
			if r.Node != n.ID() || r.Leader == "" || r.Term == 0 || r.Voters != 3 || r.Quorum != 2 || len(r.Members) != 3 {
				return fmt.Errorf("%+v", r)
			}
			for _, m := range r.Members {
				leads := m.ID == r.Leader
				if m.Raft == nil || m.Raft.Leader != r.Leader || m.Raft.Term != r.Term || m.Raft.Applied == 0 || m.Raft.Commit < m.Raft.Applied || m.Raft.Silence < 0 {
					return fmt.Errorf("%s is told as %+v, %+v", m.ID, m, m.Raft)
				}
				if leads != (m.Role == "leader") || leads != (m.Raft.State == "leader") || m.Health != "alive" {
					return fmt.Errorf("%s is told as %+v, %+v", m.ID, m, m.Raft)
				}
			}
			return nil
		})
	}

	gone := fleet.Nodes[2].ID()
	fleet.Crash(2)
	fleet.Nodes[0].Wait("the crash to be told", func() error {
		r := ask(fleet.Nodes[0])
		for _, m := range r.Members {
			if (m.ID == gone) != (m.Health == "dead") || (m.ID == gone) != (m.Raft == nil) {
				return fmt.Errorf("%+v", m)
			}
		}
		if r.Voters != 3 || r.Leader == "" || r.Leader == gone {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

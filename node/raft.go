package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// RaftResponse is how the nodes agree.
type RaftResponse struct {
	Node    string       `json:"node"`   // id of the node that answers
	Leader  string       `json:"leader"` // as that node knows it; "" when there is none
	Term    uint64       `json:"term"`   // the same
	Voters  int          `json:"voters"`
	Quorum  int          `json:"quorum"` // of the voters, that have to agree
	Members []RaftMember `json:"members"`
}

// RaftMember is one node with raft as it sees it.
type RaftMember struct {
	ID      string             `json:"id"`
	Address string             `json:"address,omitzero"` // of calls; "" where it has not announced itself yet
	Role    string             `json:"role"`             // leader, voter, nonvoter
	Health  string             `json:"health"`           // alive, dead
	Raft    *cluster.RaftState `json:"raft,omitzero"`    // nil where it did not answer at once
}

// raftCall asks a node for raft as it sees it.
var raftCall = call.To[call.Nothing, cluster.RaftState]("raft-state")

// raftTime is how long the other nodes have to answer.
const raftTime = 300 * time.Millisecond

// Raft tells how the nodes agree: who votes, who leads, and how far each is.
func (n *Node) Raft(ctx context.Context, _ account.Owner) (*RaftResponse, error) {
	members, here := n.cluster.Members(), n.cluster.RaftState()
	ctx, cancel := context.WithTimeout(ctx, raftTime)
	defer cancel()
	var nothing call.Nothing
	told := raftCall.AskAll(ctx, n.cluster, cluster.AliveIDs(members), &nothing)

	out := &RaftResponse{Node: n.cluster.Self(), Leader: here.Leader, Term: here.Term}
	known := map[string]bool{}
	for _, m := range members {
		known[m.ID] = true
		x := RaftMember{ID: m.ID, Address: m.Addr, Role: roleOf(&m), Health: healthOf(&m), Raft: told[m.ID]}
		out.Members = append(out.Members, x)
	}

	for _, s := range here.Servers {
		if s.Voter {
			out.Voters++
		}
		// One that was let in and has not announced itself yet is in no catalog, and may vote.
		if !known[s.ID] {
			m := cluster.Member{Voter: s.Voter, Leader: s.ID == here.Leader}
			out.Members = append(out.Members, RaftMember{ID: s.ID, Role: roleOf(&m), Health: healthOf(&m)})
		}
	}
	out.Quorum = out.Voters/2 + 1
	return out, nil
}

func (n *Node) serveRaft(context.Context, *call.Nothing) (*cluster.RaftState, error) {
	s := n.cluster.RaftState()
	return &s, nil
}

// roleOf is what a member is in raft.
func roleOf(m *cluster.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "nonvoter"
}

// healthOf is whether a member can be reached.
func healthOf(m *cluster.Member) string {
	if m.Alive {
		return "alive"
	}
	return "dead"
}

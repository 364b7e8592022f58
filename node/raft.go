package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// RaftResponse shows the state of raft on all nodes.
type RaftResponse struct {
	Node    string       `json:"node"`   // id of the node that answers
	Leader  string       `json:"leader"` // as the answering node knows it; "" means none
	Term    uint64       `json:"term"`   // as the answering node knows it
	Voters  int          `json:"voters"`
	Quorum  int          `json:"quorum"` // how many voters must agree
	Members []RaftMember `json:"members"`
}

// RaftMember is one node with its own view of raft.
type RaftMember struct {
	ID      string             `json:"id"`
	Address string             `json:"address,omitzero"` // for calls; "" before the node has announced itself
	Role    string             `json:"role"`             // leader, voter, nonvoter
	Health  string             `json:"health"`           // alive, dead
	Raft    *cluster.RaftState `json:"raft,omitzero"`    // nil if the node did not answer in time
}

// raftCall asks a node for its view of raft.
var raftCall = call.To[call.Nothing, cluster.RaftState]("raft-state")

// raftTime bounds the wait for the other nodes.
const raftTime = 300 * time.Millisecond

// Raft returns who votes, who leads, and how far the log of each node is.
func (n *Node) Raft(ctx context.Context, _ account.Owner) (*RaftResponse, error) {
	members, here := n.cluster.Members(), n.cluster.RaftState()
	ctx, cancel := context.WithTimeout(ctx, raftTime)
	defer cancel()
	var nothing call.Nothing
	states := raftCall.AskAll(ctx, n.cluster, cluster.AliveIDs(members), &nothing)

	out := &RaftResponse{Node: n.cluster.Self(), Leader: here.Leader, Term: here.Term}
	inCatalog := map[string]bool{}
	for _, m := range members {
		inCatalog[m.ID] = true
		x := RaftMember{ID: m.ID, Address: m.Addr, Role: roleOf(&m), Health: healthOf(&m), Raft: states[m.ID]}
		out.Members = append(out.Members, x)
	}

	for _, s := range here.Servers {
		if s.Voter {
			out.Voters++
		}
		// A server that has joined raft but not announced itself is in no catalog, and may vote.
		if !inCatalog[s.ID] {
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

// roleOf returns a member's role in raft.
func roleOf(m *cluster.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "nonvoter"
}

// healthOf returns whether a member can be reached, as a word.
func healthOf(m *cluster.Member) string {
	if m.Alive {
		return "alive"
	}
	return "dead"
}

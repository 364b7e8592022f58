package cluster

import (
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
)

// RaftState is raft as one node sees it.
type RaftState struct {
	State    string // leader, candidate, follower, shutdown
	Leader   string // id; "" where it knows none
	Term     uint64
	Heard    bool          // whether it ever heard of a leader; true of the leader itself
	Contact  time.Duration // since it did; 0 of the leader itself
	Last     uint64        // index of the newest entry of its log, committed or not
	Commit   uint64        // of the newest that it knows to be committed
	Applied  uint64        // of the newest that was handed to its catalog
	Snapshot uint64        // of the newest that is in a snapshot of it
	Servers  []RaftServer  // by the newest configuration that it knows
}

// RaftServer is a member as raft knows it.
type RaftServer struct {
	ID    string
	Voter bool
}

// RaftState is raft as this node sees it.
func (c *Cluster) RaftState() RaftState {
	r := c.replica.raft
	state := r.State()
	s := RaftState{State: strings.ToLower(state.String()), Leader: c.Leader(), Term: r.CurrentTerm()}

	// In this order: what is applied was committed, and that stood in the log, while all grow.
	s.Snapshot = uint64(raftSnapshot(c))
	s.Applied = r.AppliedIndex()
	s.Commit = r.CommitIndex()
	s.Last = r.LastIndex()

	// A leader hears of nobody: it is heard.
	last := r.LastContact()
	s.Heard = state == raft.Leader || !last.IsZero()
	if state != raft.Leader && s.Heard {
		s.Contact = clock.Since(last)
	}

	for _, x := range c.replica.servers() {
		s.Servers = append(s.Servers, RaftServer{string(x.ID), x.Suffrage == raft.Voter})
	}
	return s
}

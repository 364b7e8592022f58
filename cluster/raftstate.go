package cluster

import (
	"strings"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
)

// RaftState is raft as one node sees it.
type RaftState struct {
	State    string       `json:"state"`  // leader, candidate, follower, shutdown
	Leader   string       `json:"leader"` // id; "" where it knows none
	Term     uint64       `json:"term"`
	Silence  Silence      `json:"lastContactMs,omitzero"` // of the leader; 0 of the leader itself
	Last     uint64       `json:"lastIndex"`              // index of the newest entry of its log, committed or not
	Commit   uint64       `json:"commitIndex"`            // of the newest that it knows to be committed
	Applied  uint64       `json:"appliedIndex"`           // of the newest that was handed to its catalog
	Snapshot uint64       `json:"snapshotIndex"`          // of the newest that is in a snapshot of it
	Servers  []RaftServer `json:"-"`                      // by the newest configuration that it knows
}

// Silence is milliseconds since a node heard of something; negative: it never did.
type Silence int64

// IsZero reports whether there is nothing to tell: 0 is a time.
func (s Silence) IsZero() bool { return s < 0 }

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
	switch {
	case state == raft.Leader:
	case last.IsZero():
		s.Silence = -1
	default:
		s.Silence = Silence(clock.Since(last).Milliseconds())
	}

	for _, x := range c.replica.servers() {
		s.Servers = append(s.Servers, RaftServer{string(x.ID), x.Suffrage == raft.Voter})
	}
	return s
}

package cluster

import (
	"strings"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
)

// RaftState is the state of raft on one node.
type RaftState struct {
	State    string       `json:"state"`  // leader, candidate, follower, shutdown
	Leader   string       `json:"leader"` // id; "": it knows none
	Term     uint64       `json:"term"`
	Silence  Silence      `json:"lastContactMs,omitzero"` // time since it heard of the leader; 0 for the leader itself
	Last     uint64       `json:"lastIndex"`              // newest entry of its log, committed or not
	Commit   uint64       `json:"commitIndex"`            // newest entry that it knows to be committed
	Applied  uint64       `json:"appliedIndex"`           // newest entry that was handed to its catalog
	Snapshot uint64       `json:"snapshotIndex"`          // newest entry in its snapshot
	Servers  []RaftServer `json:"-"`                      // from the newest configuration that it knows
}

// Silence is milliseconds since a node heard of something; negative: never.
type Silence int64

// IsZero reports whether the field is omitted in JSON: 0 is a valid time.
func (s Silence) IsZero() bool { return s < 0 }

// RaftServer is a member as raft knows it.
type RaftServer struct {
	ID    string
	Voter bool
}

// RaftState returns the state of raft on this node.
func (c *Cluster) RaftState() RaftState {
	r := c.replica.raft
	state := r.State()
	s := RaftState{State: strings.ToLower(state.String()), Leader: c.Leader(), Term: r.CurrentTerm()}

	// Read in this order: all indexes grow, so Snapshot <= Applied <= Commit <= Last holds.
	s.Snapshot = uint64(raftSnapshot(c))
	s.Applied = r.AppliedIndex()
	s.Commit = r.CommitIndex()
	s.Last = r.LastIndex()

	// A leader has no contact with a leader.
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

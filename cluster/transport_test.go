package cluster

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// voter is the raft node b of the voters a and b. Its log has only the membership, in term 1. No
// node stands for election during the test.
type voter struct {
	t     *testing.T
	node  *raft.Raft
	trans *transport
	other *raft.NetworkTransport // the test calls the node from it
}

func newVoter(t *testing.T, store interface {
	raft.LogStore
	raft.StableStore
}) *voter {
	t.Helper()
	v := &voter{t: t, other: loopback(t)}
	end := make(chan struct{})
	v.trans = &transport{
		NetworkTransport: loopback(t),
		rpcs:             make(chan raft.RPC),
		ballot:           &ballot{},
		ownID:            func() raftPosition { return raftPosition{1, v.node.LastIndex()} },
		term:             func() uint64 { return v.node.CurrentTerm() },
		follows:          func(term uint64) bool { return followsIn(v.node, term) },
		unknown: func(node string) bool {
			_, leader := v.node.LeaderWithID()
			return leader == "" && !slices.Contains([]string{"a", "b"}, node)
		},
		end: end,
	}
	v.trans.ballot.open(raftPosition{})
	go v.trans.relayCalls()

	conf := raft.DefaultConfig()
	conf.LocalID, conf.LogOutput = "b", io.Discard
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Hour, time.Hour

	both := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: v.other.LocalAddr()}, {ID: "b", Address: v.trans.LocalAddr()}}}
	snaps := raft.NewDiscardSnapshotStore()
	if err := raft.BootstrapCluster(conf, store, store, snaps, v.trans, both); err != nil {
		t.Fatal(err)
	}

	var err error
	if v.node, err = raft.NewRaft(conf, &raft.MockFSM{}, store, store, snaps, v.trans); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = v.node.Shutdown().Error()
		close(end)
	})
	return v
}

// loopback returns one end of a raft transport within this process.
func loopback(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	trans, err := raft.NewTCPTransport("127.0.0.1:0", nil, 2, 10*time.Second, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trans.Close() })
	return trans
}

// from returns the header of a call from a node.
func (v *voter) from(node string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(node), Addr: []byte(node)}
}

// lead sends what a sends as leader of a term: entries after the membership, or a heartbeat. The
// channel is closed at the answer.
func (v *voter) lead(term uint64, entries ...*raft.Log) <-chan struct{} {
	args := &raft.AppendEntriesRequest{RPCHeader: v.from("a"), Term: term, Entries: entries}
	if len(entries) > 0 {
		args.PrevLogEntry, args.PrevLogTerm = 1, 1
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := v.other.AppendEntries("b", v.trans.LocalAddr(), args, &raft.AppendEntriesResponse{}); err != nil {
			v.t.Errorf("a call of term %d: %v", term, err)
		}
	}()
	return done
}

// elects reports whether a candidate gets the pre-vote and the vote for a term. Its log ends at
// index last, in term 1.
func (v *voter) elects(candidate string, term, last uint64) (poll, vote bool) {
	v.t.Helper()
	var pre raft.RequestPreVoteResponse
	if err := v.other.RequestPreVote("b", v.trans.LocalAddr(), &raft.RequestPreVoteRequest{RPCHeader: v.from(candidate), Term: term, LastLogIndex: last, LastLogTerm: 1}, &pre); err != nil {
		v.t.Fatal(err)
	}
	var resp raft.RequestVoteResponse
	if err := v.other.RequestVote("b", v.trans.LocalAddr(), &raft.RequestVoteRequest{RPCHeader: v.from(candidate), Term: term, LastLogIndex: last, LastLogTerm: 1}, &resp); err != nil {
		v.t.Fatal(err)
	}
	return pre.Granted, resp.Granted
}

// A leader gives a third node its vote, tells only that node, and is lost. Two of three nodes
// remain. The one with the whole log is unknown to the other.
func TestRaftTransport_votesForAnUnknownVoter(t *testing.T) {
	t.Parallel()
	v := newVoter(t, raft.NewInmemStore())
	if poll, vote := v.elects("c", 2, 1); poll || vote {
		t.Errorf("with no more in its log than this node has: %t, %t", poll, vote)
	}
	if poll, vote := v.elects("c", 3, 2); !poll || !vote {
		t.Errorf("with a longer log: %t, %t", poll, vote)
	}
	if poll, vote := v.elects("d", 3, 5); vote {
		t.Errorf("a second vote in the term: %t, %t", poll, vote)
	}
	if poll, vote := v.elects("d", 2, 5); poll || vote {
		t.Errorf("in a term that is over: %t, %t", poll, vote)
	}

	<-v.lead(4)
	if poll, vote := v.elects("c", 5, 2); poll || vote {
		t.Errorf("while another leads: %t, %t", poll, vote)
	}
}

// slowTerm is a store that writes one term as slowly as the test wants.
type slowTerm struct {
	*raft.InmemStore
	term    uint64
	noting  chan struct{} // closed when it begins to write
	release chan struct{}
}

func (s *slowTerm) SetUint64(key []byte, val uint64) error {
	if string(key) == string(currentTerm) && val == s.term {
		close(s.noting)
		<-s.release
	}
	return s.InmemStore.SetUint64(key, val)
}

// Entries of an old leader and the heartbeat of the next one arrive together while the disk is
// slow. The node's term must not go back, or others would take its disk for an old image.
func TestRaftTransport_heartbeatKeepsTheTerm(t *testing.T) {
	t.Parallel()
	store := &slowTerm{InmemStore: raft.NewInmemStore(), term: 3, noting: make(chan struct{}), release: make(chan struct{})}
	v := newVoter(t, store)
	decided := make(chan bool, 1)
	v.trans.follows = func(term uint64) bool {
		follows := followsIn(v.node, term)
		decided <- follows
		return follows
	}

	old := v.lead(3, &raft.Log{Index: 2, Term: 3, Type: raft.LogNoop})
	<-store.noting
	next := v.lead(4)

	// A call that does not wait for the main goroutine ends before the disk does.
	select {
	case beside := <-decided:
		if beside {
			<-next
		}
	case <-next:
	}
	close(store.release)

	<-old
	<-next
	if got := v.node.CurrentTerm(); got != 4 {
		t.Errorf("the node is in term %d after a heartbeat of term 4", got)
	}
}

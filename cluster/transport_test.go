package cluster

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// voter is a node of raft, b of the voters a and b, with the membership as its only
// entry, of term 1. Nobody stands for election within the time of a test.
type voter struct {
	t     *testing.T
	node  *raft.Raft
	trans *transport
	other *raft.NetworkTransport // from which the test calls it
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
		own:              func() raftPosition { return raftPosition{1, v.node.LastIndex()} },
		term:             func() uint64 { return v.node.CurrentTerm() },
		follows:          func(term uint64) bool { return followsIn(v.node, term) },
		unknown: func(node string) bool {
			_, leader := v.node.LeaderWithID()
			return leader == "" && !slices.Contains([]string{"a", "b"}, node)
		},
		end: end,
	}
	v.trans.ballot.open(raftPosition{})
	go v.trans.relay()

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

// loopback is a transport of raft for one end of a connection in this process.
func loopback(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	trans, err := raft.NewTCPTransport("127.0.0.1:0", nil, 2, 10*time.Second, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trans.Close() })
	return trans
}

// from is what a call of a node begins with.
func (v *voter) from(node string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(node), Addr: []byte(node)}
}

// lead sends what a sends when it leads in a term: entries behind the membership, or
// else a heartbeat. The channel is closed at the answer.
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

// elects reports whether a candidate whose log ends at an entry of term 1 gets the vote
// for a term, first of a poll and then of the election.
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

// A leader gives a third node its vote, tells that node alone, and is lost. Two of three
// are there, and the only one of them with the whole log is unknown to the other.
func TestAVoterThatOthersHaveNotHeardOfCanLead(t *testing.T) {
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

// slowTerm is a store that takes as long as the test wants to note one term.
type slowTerm struct {
	*raft.InmemStore
	term    uint64
	noting  chan struct{} // closed when it is at it
	release chan struct{}
}

func (s *slowTerm) SetUint64(key []byte, val uint64) error {
	if string(key) == string(currentTerm) && val == s.term {
		close(s.noting)
		<-s.release
	}
	return s.InmemStore.SetUint64(key, val)
}

// Entries of an old leader and the heartbeat of the next one come together, as after a
// partition, while the disk is slow: the term of the node must not go back, or it
// would be taken for one whose disk was replaced by an older image.
func TestATermDoesNotGoBackBesideAHeartbeat(t *testing.T) {
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

	// What does not wait for its turn is over before the disk is.
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

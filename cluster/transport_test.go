package cluster

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

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
	follower, leader := loopback(t), loopback(t)
	store := &slowTerm{InmemStore: raft.NewInmemStore(), term: 3, noting: make(chan struct{}), release: make(chan struct{})}

	var node *raft.Raft
	decided, end := make(chan bool, 1), make(chan struct{})
	trans := &transport{
		NetworkTransport: follower,
		rpcs:             make(chan raft.RPC),
		ballot:           &ballot{},
		end:              end,
		follows: func(term uint64) bool {
			follows := followsIn(node, term)
			decided <- follows
			return follows
		},
	}
	go trans.relay()
	defer close(end)

	// Two voters of which the other leads; no election within the time of a test.
	conf := raft.DefaultConfig()
	conf.LocalID, conf.LogOutput = "b", io.Discard
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Hour, time.Hour
	voters := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: leader.LocalAddr()}, {ID: "b", Address: follower.LocalAddr()}}}
	snaps := raft.NewDiscardSnapshotStore()
	if err := raft.BootstrapCluster(conf, store, store, snaps, trans, voters); err != nil {
		t.Fatal(err)
	}
	var err error
	if node, err = raft.NewRaft(conf, &raft.MockFSM{}, store, store, snaps, trans); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Shutdown().Error() }()

	// The channel is closed at the answer.
	send := func(term uint64, entries ...*raft.Log) <-chan struct{} {
		args := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte(leader.LocalAddr())}, Term: term, Entries: entries}
		if len(entries) > 0 {
			args.PrevLogEntry, args.PrevLogTerm = 1, 1 // the membership
		}

		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := leader.AppendEntries("b", follower.LocalAddr(), args, &raft.AppendEntriesResponse{}); err != nil {
				t.Errorf("a call of term %d: %v", term, err)
			}
		}()
		return done
	}

	old := send(3, &raft.Log{Index: 2, Term: 3, Type: raft.LogNoop})
	<-store.noting
	next := send(4)

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
	if got := node.CurrentTerm(); got != 4 {
		t.Errorf("the node is in term %d after a heartbeat of term 4", got)
	}
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

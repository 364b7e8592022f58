package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// transport is raft's transport over the port for calls. Servers are addressed by id, so that a new
// address does not change raft's membership. It also keeps raft out of elections in which this node
// must not take part yet.
type transport struct {
	*raft.NetworkTransport
	rpcs      chan raft.RPC
	ballot    *ballot
	ownID     func() raftPosition
	term      func() uint64
	follows   func(term uint64) bool // whether this node follows the leader of a term
	unknown   func(node string) bool // whether no leader is known and raft's membership here gives the node no vote
	absence   func(node string) absence
	followers *followers // gets each answer of a follower
	end       <-chan struct{}
}

// AppendEntries implements raft.Transport. After failures raft waits up to ten seconds before it
// sends entries again, even if the node has returned. Until then the node would be neither ready
// nor able to lead. So a call to an absent node waits until the node is back and is repeated, and
// raft counts no failure.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	known := t.followers.rememberedMark(string(id))
	err := t.NetworkTransport.AppendEntries(id, addr, args, resp)
	if err != nil && !heartbeat(args) && errors.Is(err, wire.ErrUnreachable) {
		if t.absence(string(id)).waitUntilBack() {
			err = t.NetworkTransport.AppendEntries(id, addr, args, resp)
		}
	}
	if err == nil {
		t.followers.evaluateAnswer(string(id), known, args, resp)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if !t.ballot.allows(t.ownID()) {
		return errUnproved
	}
	return t.NetworkTransport.RequestVote(id, addr, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if !t.ballot.allows(t.ownID()) {
		return errUnproved
	}
	return t.NetworkTransport.RequestPreVote(id, addr, args, resp)
}

// SetHeartbeatHandler implements raft.Transport. Raft answers heartbeats outside its main
// goroutine, so that a slow disk does not cost the leadership. But if a heartbeat begins a term
// while the main goroutine writes an earlier one, the earlier may be written last. The node's term
// would go back, and others would take its disk for an old image. So only heartbeats of the leader
// that this node already follows are answered directly. The others wait for the main goroutine.
func (t *transport) SetHeartbeatHandler(answer func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if args, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && t.follows(args.Term) {
			answer(rpc)
			return
		}
		t.deliverToRaft(rpc)
	})
}

// followsIn reports whether a node follows the leader of a term.
func followsIn(node *raft.Raft, term uint64) bool {
	return node.State() == raft.Follower && node.CurrentTerm() == term
}

// denyElection returns the answer to an election call in which this node must not take part. It
// returns nil for other calls.
func (t *transport) denyElection(command any) any {
	switch r := command.(type) {
	case *raft.RequestVoteRequest:
		if !t.ballot.allows(raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestVoteResponse{RPCHeader: r.RPCHeader, Term: t.term()}
		}

	// Deny pre-votes alike: they tell a candidate whether it would win.
	case *raft.RequestPreVoteRequest:
		if !t.ballot.allows(raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: t.term()}
		}

	// This call asks the node to take over the lead at once, without a pre-vote.
	case *raft.TimeoutNowRequest:
		if !t.ballot.allows(t.ownID()) {
			return &raft.TimeoutNowResponse{RPCHeader: r.RPCHeader}
		}
	}
	return nil
}

// grantToUnknown lets a candidate get this node's vote although the membership in this node's log
// does not name the candidate as a voter. It does so only if the candidate's log is ahead of this
// one: there the candidate may have become a voter. After the leader is lost, the candidate may be
// the only node with that entry, and raft would refuse it for ever. Ongaro's dissertation (4.1) does
// not check the membership either. A pre-vote gets the returned answer. For a vote the result is nil,
// and raft decides without its check.
func (t *transport) grantToUnknown(command any) any {
	unknownButAhead := func(candidate []byte, end raftPosition) bool {
		return t.ownID().behind(end) && t.unknown(string(candidate))
	}

	switch r := command.(type) {
	case *raft.RequestPreVoteRequest:
		if r.Term >= t.term() && unknownButAhead(r.ID, raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term, Granted: true}
		}

	// Raft skips its check for calls without an id, which old versions send.
	case *raft.RequestVoteRequest:
		if unknownButAhead(r.ID, raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			r.ID = nil
		}
	}
	return nil
}

// heartbeat reports whether a call only tells who leads, without log entries.
func heartbeat(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0
}

// absence is a node that could not be reached.
type absence struct {
	alive func() bool // according to gossip
	wait  func() bool // waits a moment; false if there is no use in waiting
	reach func() bool // tries to connect, in case gossip is wrong
}

// reachEvery is the number of waits between two tries to connect.
const reachEvery = 100

// waitUntilBack waits for the node, and reports whether it came back.
func (a absence) waitUntilBack() bool {
	if a.alive() {
		return false // the failure has another cause, or gossip has not noticed yet
	}
	for n := 1; a.wait(); n++ {
		if a.alive() || n%reachEvery == 0 && a.reach() {
			return true
		}
	}
	return false
}

// absencePause is one wait, at Timing 1.
const absencePause = 50 * time.Millisecond

// newTransport connects raft on this node with the other nodes. It lasts until the node is closed.
func newTransport(n *network, r *replica, b *ballot, f *followers) *transport {
	t := &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  raftStream{n.port.Raft(), n},
			MaxPool: transportPool,
			// No pipelining: after a refused append it can hang for ever.
			MaxRPCsInFlight:         1,
			Timeout:                 n.scaled(transportTimeout),
			Logger:                  newRaftLog(n.log),
			MsgpackUseNewTimeFormat: true,
		}),
		rpcs:      make(chan raft.RPC),
		ballot:    b,
		ownID:     r.endOfLog,
		term:      func() uint64 { return r.raft.CurrentTerm() },
		follows:   func(term uint64) bool { return followsIn(r.raft, term) },
		unknown:   func(node string) bool { return r.leader() == "" && !slices.Contains(r.voters(), node) },
		absence:   func(node string) absence { return absenceOf(node, n, r) },
		followers: f,
		end:       n.life.Done(),
	}

	n.tasks.Go(t.relayCalls)
	return t
}

// absenceOf returns how to wait for a node that raft cannot reach.
func absenceOf(node string, n *network, r *replica) absence {
	return absence{
		alive: func() bool { return n.alive(node) },

		wait: func() bool {
			// Raft needs the node only while this one leads and the other is a member.
			m := r.view().Member(node)
			gone := m != nil && m.State == catalog.MemberRemoved
			return !gone && r.raft.State() == raft.Leader && n.pause(context.Background(), n.scaled(absencePause))
		},

		reach: func() bool {
			conn, err := n.dialRaft(node, n.scaled(formTime))
			if err != nil {
				return false
			}
			conn.Close()
			return true
		},
	}
}

// relayCalls passes on calls from the network, so that electSelf can add its own.
func (t *transport) relayCalls() {
	for {
		select {
		case rpc := <-t.NetworkTransport.Consumer():
			// A denied call never reaches raft, so raft casts no vote.
			answer := t.denyElection(rpc.Command)
			if answer == nil {
				answer = t.grantToUnknown(rpc.Command)
			}
			if answer != nil {
				rpc.Respond(answer, nil)
				continue
			}
			t.deliverToRaft(rpc)
		case <-t.end:
			return
		}
	}
}

// deliverToRaft passes a call to raft's main goroutine.
func (t *transport) deliverToRaft(rpc raft.RPC) {
	select {
	case t.rpcs <- rpc:
	case <-t.end:
	}
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// electSelf makes raft ask for votes at once: it sends this node the call by which a leader hands over.
func (t *transport) electSelf(id string) {
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
	done := make(chan raft.RPCResponse, 1)
	t.rpcs <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header}, RespChan: done}
	<-done
}

// raftStream implements raft.StreamLayer.
type raftStream struct {
	net.Listener
	network *network
}

// nodeAddr is a node id used as a net.Addr.
type nodeAddr string

// Network implements net.Addr.
func (nodeAddr) Network() string { return "shoal" }

// String implements net.Addr.
func (a nodeAddr) String() string { return string(a) }

// Addr implements net.Listener.
func (s raftStream) Addr() net.Addr { return nodeAddr(s.network.self.node) }

// Dial implements raft.StreamLayer.
func (s raftStream) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.network.dialRaft(string(id), timeout)
}

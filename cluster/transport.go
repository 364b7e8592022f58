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

// transport is raft's, over the port for calls. Servers are addressed by
// their ids, so that a new address is no change of raft's membership. It also
// stands between raft and elections in which this node must not take part yet.
type transport struct {
	*raft.NetworkTransport
	rpcs    chan raft.RPC
	ballot  *ballot
	own     func() raftPosition
	term    func() uint64
	follows func(term uint64) bool // this node follows the leader of a term
	unknown func(node string) bool // no leader is known, and the membership here has no vote for the node
	absence func(node string) absence
	told    *followers // of each answer of a follower
	end     <-chan struct{}
}

// AppendEntries implements raft.Transport. After failures raft waits longer
// and longer before it sends entries again, in the end ten seconds, also to a
// node that has come back meanwhile: that one would be neither ready nor fit to
// lead for as long. So a call to a node that is not there waits until the node
// is and is made again, and raft counts no failure.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	known := t.told.known(string(id))
	err := t.NetworkTransport.AppendEntries(id, addr, args, resp)
	if err != nil && !heartbeat(args) && errors.Is(err, wire.ErrUnreachable) {
		if t.absence(string(id)).outlast() {
			err = t.NetworkTransport.AppendEntries(id, addr, args, resp)
		}
	}
	if err == nil {
		t.told.heard(string(id), known, args, resp)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if !t.ballot.allows(t.own()) {
		return errUnproved
	}
	return t.NetworkTransport.RequestVote(id, addr, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if !t.ballot.allows(t.own()) {
		return errUnproved
	}
	return t.NetworkTransport.RequestPreVote(id, addr, args, resp)
}

// SetHeartbeatHandler implements raft.Transport. Raft answers heartbeats beside its
// main goroutine, so that a slow disk costs no lead. Where one begins a term that
// the main goroutine is beginning an earlier one of, both write it, and what is
// written last may be the earlier: the term of the node goes back, and others take its
// disk for an old image. So what is answered there is heartbeats of the leader that
// this node follows already; the others wait for their turn.
func (t *transport) SetHeartbeatHandler(answer func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if args, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && t.follows(args.Term) {
			answer(rpc)
			return
		}
		t.deliver(rpc)
	})
}

// followsIn reports whether a node follows the leader of a term.
func followsIn(node *raft.Raft, term uint64) bool {
	return node.State() == raft.Follower && node.CurrentTerm() == term
}

// denied answers a call about an election in which this node takes no part. It
// is nil for other calls.
func (t *transport) denied(command any) any {
	switch r := command.(type) {
	case *raft.RequestVoteRequest:
		if !t.ballot.allows(raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestVoteResponse{RPCHeader: r.RPCHeader, Term: t.term()}
		}

	// A vote before the election counts alike: with it a candidate learns that it would win.
	case *raft.RequestPreVoteRequest:
		if !t.ballot.allows(raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: t.term()}
		}

	// Told to take over at once, a node would skip the vote that refuses it.
	case *raft.TimeoutNowRequest:
		if !t.ballot.allows(t.own()) {
			return &raft.TimeoutNowResponse{RPCHeader: r.RPCHeader}
		}
	}
	return nil
}

// believed grants what raft would refuse because the membership that this node has
// gives the candidate no vote, although the candidate's log goes on behind the end of
// this one, with a later membership perhaps. Whoever was given a vote may be the only one
// who was told before the leader was lost: there would be no leader without it, however
// many answer. By Ongaro's dissertation (4.1) a voter does not ask its own
// membership at all. For a vote it makes raft not ask; all else raft looks at as ever.
func (t *transport) believed(command any) any {
	ahead := func(candidate []byte, end raftPosition) bool {
		return t.own().behind(end) && t.unknown(string(candidate))
	}

	switch r := command.(type) {
	case *raft.RequestPreVoteRequest:
		if r.Term >= t.term() && ahead(r.ID, raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			return &raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term, Granted: true}
		}

	// Raft knows calls without an id, of its first version, and looks for none of them in the membership.
	case *raft.RequestVoteRequest:
		if ahead(r.ID, raftPosition{r.LastLogTerm, r.LastLogIndex}) {
			r.ID = nil
		}
	}
	return nil
}

// heartbeat tells a call that only says who leads from one about the log.
func heartbeat(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0
}

// absence is a node that could not be reached.
type absence struct {
	alive func() bool // gossip hears of it
	wait  func() bool // for a moment; false when there is nothing to wait for
	reach func() bool // tries to connect, where gossip may be wrong
}

// reachEvery is how many waits there are between two tries to connect.
const reachEvery = 100

// outlast waits, and reports whether the node came back meanwhile.
func (a absence) outlast() bool {
	if a.alive() {
		return false // what failed has another reason, or gossip has not noticed
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

// newTransport connects raft on this node with that of the others. It lasts
// until the node is closed.
func newTransport(n *network, r *replica, b *ballot, told *followers) *transport {
	t := &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  raftStream{n.port.Raft(), n},
			MaxPool: transportPool,
			// No pipelining: after a refused append it can wait for ever.
			MaxRPCsInFlight:         1,
			Timeout:                 n.scaled(transportTimeout),
			Logger:                  newRaftLog(n.log),
			MsgpackUseNewTimeFormat: true,
		}),
		rpcs:    make(chan raft.RPC),
		ballot:  b,
		own:     r.position,
		term:    func() uint64 { return r.raft.CurrentTerm() },
		follows: func(term uint64) bool { return followsIn(r.raft, term) },
		unknown: func(node string) bool { return r.leader() == "" && !slices.Contains(r.voters(), node) },
		absence: func(node string) absence { return absenceOf(node, n, r) },
		told:    told,
		end:     n.life.Done(),
	}

	n.tasks.Go(t.relay)
	return t
}

// absenceOf is a node that the raft of this one cannot reach.
func absenceOf(node string, n *network, r *replica) absence {
	return absence{
		alive: func() bool { return n.alive(node) },

		wait: func() bool {
			// As long as this node leads and the other is a member, it will be needed again.
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

// relay hands on what the network brings, so that electSelf can add to it.
func (t *transport) relay() {
	for {
		select {
		case rpc := <-t.NetworkTransport.Consumer():
			// What is denied never reaches raft, so it casts no vote.
			answer := t.denied(rpc.Command)
			if answer == nil {
				answer = t.believed(rpc.Command)
			}
			if answer != nil {
				rpc.Respond(answer, nil)
				continue
			}
			t.deliver(rpc)
		case <-t.end:
			return
		}
	}
}

// deliver hands a call to raft's main goroutine, once that is free.
func (t *transport) deliver(rpc raft.RPC) {
	select {
	case t.rpcs <- rpc:
	case <-t.end:
	}
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// electSelf makes raft ask for votes at once.
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

// nodeAddr is a node id where raft wants an address.
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

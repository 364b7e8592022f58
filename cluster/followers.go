package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// followers tracks, while this node leads, how far its followers' logs reach, by their answers.
type followers struct {
	memory    *memory
	cluster   func() string
	commit    func() uint64
	term      func() uint64                    // the current term of this node
	onRegress func(node string, refused error) // called for a follower that lost acknowledged entries

	mu       sync.Mutex        // guards the fields below
	lastTerm uint64            // the term of the last answer
	match    map[string]uint64 // last entry that a follower shares with this node, in that term
}

// newFollowers returns a followers without answers. onRegress is called for a follower that lost
// acknowledged entries.
func newFollowers(r *replica, m *memory, onRegress func(node string, refused error)) *followers {
	return &followers{
		memory:    m,
		cluster:   r.self.cluster,
		commit:    func() uint64 { return r.raft.CommitIndex() },
		term:      func() uint64 { return r.raft.CurrentTerm() },
		onRegress: onRegress,
		match:     map[string]uint64{},
	}
}

// rememberedMark returns what this node remembers of a follower. It must be called before the
// follower is: see evaluateAnswer.
func (f *followers) rememberedMark(node string) mark { return f.memory.markOf(f.cluster(), node) }

// evaluateAnswer evaluates a follower's answer to a call about the log. remembered is what this node
// remembered of it when the call was made.
func (f *followers) evaluateAnswer(node string, remembered mark, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	cluster := f.cluster()

	// LastLog is the end of the follower's log when the call arrived. If it is before a committed
	// entry that the follower had, its disk was replaced. remembered is from before the call,
	// because heartbeats and entries travel concurrently, and an older answer may arrive last.
	//
	// The term of the answer is no sign of lost data: it is at least the call's. A late answer from
	// an earlier lead of this node may have a lower one.
	if resp.LastLog < remembered.Index {
		f.onRegress(node, refusedOlder(mark{resp.LastLog, resp.Term}, remembered))
		return
	}

	// Remember only committed entries, because a new leader may replace the others. The match and
	// the commit index must be from the same lead of this node, so from the same term:
	//	recorded = min(match in term T, commit in term T)
	match, commit := f.matchOf(node, args, resp), f.commit()
	if args.Term != f.term() {
		match = 0
	}
	f.memory.recordMark(cluster, node, mark{min(match, commit), resp.Term})
}

// matchOf records from the answer to a call which entries a follower shares with this node, and returns
// the last one known in the call's term; 0 if none is known. A later term forgets all earlier matches.
func (f *followers) matchOf(node string, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()

	if args.Term < f.lastTerm {
		return 0 // an answer from an earlier lead of this node
	}
	if args.Term > f.lastTerm {
		f.lastTerm = args.Term
		clear(f.match)
	}

	// A heartbeat has no entries, so it proves nothing about the log.
	if resp.Success && !heartbeat(args) {
		f.match[node] = args.PrevLogEntry + uint64(len(args.Entries))
	}
	return f.match[node]
}

const methodExpel = "cluster.expel" // tells a follower why it must stop

// expulsion tells followers that lost acknowledged entries to stop.
type expulsion struct {
	*env
	network  *network
	replica  *replica
	notified sync.Map // by node: the epoch that was told to stop
}

// registerHandlers registers the handler by which the leader stops this node.
func (x *expulsion) registerHandlers() { x.network.handle(methodExpel, x.serveExpel) }

// expel tells a follower to stop, but only once for each start of the follower.
func (x *expulsion) expel(node string, why error) {
	m := x.replica.view().Member(node)
	if m == nil {
		return
	}
	if before, told := x.notified.Swap(node, m.Epoch); told && before == m.Epoch {
		return
	}
	x.log.Error("a member has lost what it had acknowledged and is told to stop", "peer", node, "addr", m.Addr, "error", why)

	// Do not wait: the node is in trouble and may be slow.
	x.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(x.life, x.scaled(formTime))
		defer cancel()
		if _, err := x.network.call(ctx, node, methodExpel, []byte(why.Error())); err != nil {
			x.log.Warn("the member was not told to stop", "peer", node, "error", err)
		}
	})
}

// serveExpel stops this node when its leader tells it to.
func (x *expulsion) serveExpel(_ context.Context, from Peer, in []byte) ([]byte, error) {
	refused := refusalIn(errors.New(string(in)))
	if refused == nil || from.Node != x.replica.leader() {
		return nil, errors.New("cluster: only the leader can expel a node, and it says why")
	}
	x.fail(refused)
	return nil, nil
}

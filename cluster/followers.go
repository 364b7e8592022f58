package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// followers tracks, while this node leads, how far its followers' logs reach. The answers of the
// followers tell it. No other node knows it better: the leader counts on those entries.
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

// newFollowers returns an empty followers. onRegress is called for a follower whose log became
// shorter.
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

// known returns what is remembered of a follower. The caller must ask before it calls the follower.
func (f *followers) known(node string) mark { return f.memory.markOf(f.cluster(), node) }

// heard evaluates a follower's answer to a call about the log. known is what was remembered when
// the call was made.
func (f *followers) heard(node string, known mark, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	cluster := f.cluster()

	// LastLog is the end of the follower's log when the call arrived. If it is before a committed
	// entry that the follower had, its disk was replaced. What was learned during the call does not
	// count: heartbeats and entries travel concurrently, and an older answer may arrive last.
	//
	// The term of the answer proves nothing. It is never below the call's, so only calls from an
	// earlier lead of this node, which still end, could have a lower one.
	if resp.LastLog < known.Index {
		f.onRegress(node, refusedOlder(mark{resp.LastLog, resp.Term}, known))
		return
	}

	// Remember only committed entries, because a new leader may replace the others. A match from an
	// earlier lead of this node proves nothing now. So the match and the commit index must belong
	// to the same term:
	//	noted = min(match in term T, commit in term T)
	match, commit := f.matched(node, args, resp), f.commit()
	if args.Term != f.term() {
		match = 0
	}
	f.memory.note(cluster, node, mark{min(match, commit), resp.Term})
}

// matched returns the last entry that a follower is known to share with this node in the call's
// term; 0 if none is known.
func (f *followers) matched(node string, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()

	if args.Term < f.lastTerm {
		return 0 // a late answer
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

// answer registers the handler by which the leader stops this node.
func (x *expulsion) answer() { x.network.handle(methodExpel, x.serve) }

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

// serve stops this node when its leader tells it to.
func (x *expulsion) serve(_ context.Context, from Peer, in []byte) ([]byte, error) {
	no := refusalIn(errors.New(string(in)))
	if no == nil || from.Node != x.replica.leader() {
		return nil, errors.New("cluster: only the leader can expel a node, and it says why")
	}
	x.fail(no)
	return nil, nil
}

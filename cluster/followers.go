package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// followers is what this node knows of its followers' logs while it leads, from
// their answers. Nobody knows that better than the leader: it counts on those
// entries.
type followers struct {
	memory    *memory
	cluster   func() string
	commit    func() uint64
	term      func() uint64                    // of this node now
	onRegress func(node string, refused error) // called for a follower that has gone back in time

	mu    sync.Mutex        // guards the fields below
	led   uint64            // the term in which this node led when it heard last
	match map[string]uint64 // up to which entry a follower has what this node has, in that term
}

// newFollowers starts with nothing known. onRegress is called for a follower whose log became
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

// known is what is remembered of a follower now, before it is called.
func (f *followers) known(node string) mark { return f.memory.of(f.cluster(), node) }

// heard takes in the answer of a follower to a call about the log, of which
// known was remembered when the call was made.
func (f *followers) heard(node string, known mark, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	cluster := f.cluster()

	// LastLog is what the follower had when the call came. Less than it had
	// before, of what was committed, means that its disk has changed under it.
	// What was learned during the call does not count: heartbeats and entries
	// travel beside each other, and the answer to one that came first may be
	// read last.
	//
	// Its term says nothing here: no answer has a lower one than its call, so that only
	// calls of an earlier lead of this node could show it, which still come to an end.
	if resp.LastLog < known.Index {
		f.onRegress(node, refusedOlder(mark{resp.LastLog, resp.Term}, known))
		return
	}

	// Only what is committed stays: the rest of a log may be replaced by that of
	// another leader. So what a follower matched under an earlier lead of this
	// node says nothing any more, and what is committed has to be that of the
	// lead in which it matched.
	//
	//	noted = min(match in term T, commit in term T)
	match, commit := f.matched(node, args, resp), f.commit()
	if args.Term != f.term() {
		match = 0
	}
	f.memory.note(cluster, node, mark{min(match, commit), resp.Term})
}

// matched is up to which entry a follower has what this node has, as it has
// shown in the term of a call; 0 where it has not.
func (f *followers) matched(node string, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()

	if args.Term < f.led {
		return 0 // an answer that was long on its way
	}
	if args.Term > f.led {
		f.led = args.Term
		clear(f.match)
	}

	// A heartbeat carries no entries and proves nothing about those before.
	if resp.Success && !heartbeat(args) {
		f.match[node] = args.PrevLogEntry + uint64(len(args.Entries))
	}
	return f.match[node]
}

const methodExpel = "cluster.expel" // tells a follower why it must stop

// expulsion tells followers that have gone back in time to stop.
type expulsion struct {
	*env
	network *network
	replica *replica
	told    sync.Map // node to the epoch in which this node told it
}

// answer lets the leader expel this node.
func (x *expulsion) answer() { x.network.handle(methodExpel, x.serve) }

// expel tells a follower to stop, once for each of its starts.
func (x *expulsion) expel(node string, why error) {
	m := x.replica.view().Member(node)
	if m == nil {
		return
	}
	if before, told := x.told.Swap(node, m.Epoch); told && before == m.Epoch {
		return
	}
	x.log.Error("a member has lost what it had acknowledged and is told to stop", "peer", node, "addr", m.Addr, "error", why)

	// In the background: nobody waits for a node that is in trouble.
	x.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(x.life, x.scaled(formTime))
		defer cancel()
		if _, err := x.network.call(ctx, node, methodExpel, []byte(why.Error())); err != nil {
			x.log.Warn("the member was not told to stop", "peer", node, "error", err)
		}
	})
}

// serve ends this node when its leader says that it has gone back in time.
func (x *expulsion) serve(_ context.Context, from Peer, in []byte) ([]byte, error) {
	no := refusalIn(errors.New(string(in)))
	if no == nil || from.Node != x.replica.leader() {
		return nil, errors.New("cluster: only the leader can expel a node, and it says why")
	}
	x.fail(no)
	return nil, nil
}

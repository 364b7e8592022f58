package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
)

// How a node that starts proves that it is itself before it votes.
//
// A raft identity is only worth something while one process has it and that
// process remembers what it promised. A copy of a data directory gives the
// identity to two; an older image put back makes one forget entries and votes
// that the others count on. Either way a cluster can elect a leader without
// what was acknowledged. So a node does not vote, nor ask for votes, until
//
//	nobody says no       no node remembers a later history of it, no other
//	                     start of it answers anywhere
//
// and one of
//
//	a leader feeds it    it has applied all that was committed when it asked:
//	                     whatever it had forgotten it has again
//	a majority agrees    with it, there is no leader, and its log lies in the
//	                     file in which it left it
//	all voters agree     there is no leader, and it votes only for a log that
//	                     is not behind that of any of them
//
// The last is for a directory that was moved, copied or restored: the log is in
// another file then, which the file system tells (see place). That alone says
// nothing of who is the original, so the others are asked. Until all of them
// answer, a leader comes up, or an operator recovers, such a node waits: it is
// better to have no leader than one without what was acknowledged.
//
// What cannot be seen: a whole machine put back to an older image, while the
// nodes that remember it are gone too. Nothing that is left tells it from a
// machine that lost power at that moment.

const methodRecall = "cluster.recall" // asks a node what it remembers of the caller

// Times of the proof, at Timing 1.
const (
	provePause = 100 * time.Millisecond // between two rounds of questions
	proveTime  = 2 * time.Second        // for one round
)

// recallRequest is how a node that starts describes itself. Who it is says
// its certificate.
type recallRequest struct {
	Addr string // of its port for calls
	Last mark   // its last entry and its term
}

// recallReply is what another node answers, unless it refuses.
type recallReply struct {
	Last   raftPosition // of the node that answers
	Leader string       // as it knows it; empty for none
	Leads  bool         // it leads itself, confirmed by a majority
	Index  uint64       // with Leads: that the caller must have applied
}

// raftPosition is the end of a log. Of two, the one with the later term has
// all that was committed, and within a term the longer one.
type raftPosition struct{ Term, Index uint64 }

func (p raftPosition) behind(q raftPosition) bool {
	return p.Term < q.Term || p.Term == q.Term && p.Index < q.Index
}

// ballot decides whether this node takes part in elections. Its methods are
// safe for concurrent use.
type ballot struct {
	state atomic.Pointer[ballotState]
}

type ballotState struct {
	proved bool
	bar    raftPosition // votes are only for logs that are not behind it
	why    error        // not proved: the reason
}

// closed notes why the node does not vote yet.
func (b *ballot) closed(why error) { b.state.Store(&ballotState{why: why}) }

// open lets the node vote, for logs that are not behind bar.
func (b *ballot) open(bar raftPosition) { b.state.Store(&ballotState{proved: true, bar: bar}) }

func (b *ballot) proved() bool {
	s := b.state.Load()
	return s != nil && s.proved
}

// allows reports whether this node may vote for a log that ends there.
func (b *ballot) allows(p raftPosition) bool {
	s := b.state.Load()
	return s != nil && s.proved && !p.behind(s.bar)
}

var errUnproved = errors.New("this node does not vote before it has proved that its data directory is no copy and no old image")

// prover asks the others about this node.
type prover struct {
	self    string
	moved   bool // the log is in another file than it was left in
	voters  func() []string
	ask     func(ctx context.Context, node string) (recallReply, error)
	twins   func(ctx context.Context) error // refuses where another start of this node answers
	applied func() uint64
	own     func() raftPosition
}

// verdict is what a round of questions came to.
type verdict struct {
	proved bool
	bar    raftPosition
	why    error // not proved yet; a refusal when it never will be
}

// round asks all other members once.
func (p *prover) round(ctx context.Context, others []string) verdict {
	if err := p.twins(ctx); err != nil {
		return verdict{why: err}
	}
	answers, err := p.askAll(ctx, others)
	if err != nil {
		return verdict{why: err}
	}
	return p.judge(answers)
}

// askAll collects the answers of those that give one, and the first refusal.
func (p *prover) askAll(ctx context.Context, others []string) (map[string]recallReply, error) {
	var mu sync.Mutex
	var refused error
	answers := map[string]recallReply{}

	// All at once: a round has two seconds, and each that is away would take them all.
	var wg sync.WaitGroup
	for _, node := range others {
		wg.Go(func() {
			a, err := p.ask(ctx, node)

			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers[node] = a
			} else if no := refusalIn(err); no != nil && refused == nil {
				refused = no
			}
		})
	}

	wg.Wait()
	return answers, refused
}

// judge decides by the answers.
func (p *prover) judge(answers map[string]recallReply) verdict {
	// A leader has all that was committed. Who has applied that too lacks
	// nothing, whatever it may have forgotten before.
	leader := ""
	for _, a := range answers {
		// A leader that answers decides alone, whether or not it has been caught up with.
		if a.Leads {
			if p.applied() >= a.Index {
				return verdict{proved: true}
			}
			return verdict{why: fmt.Errorf("it has applied %d of the leader's %d entries", p.applied(), a.Index)}
		}

		// A follower may name a leader that has not answered: its word is awaited below.
		if a.Leader != "" && a.Leader != p.self {
			leader = a.Leader
		}
	}

	if leader != "" {
		return verdict{why: fmt.Errorf("node %s leads and has not answered yet", leader)}
	}

	// Without one, the votes of a majority elect: as many must have agreed.
	voters := p.voters()
	agree, bar := 1, p.own()
	var silent []string

	// The bar is the newest last entry among those who agree: bar = max(own, last of each).
	for _, v := range voters {
		a, ok := answers[v]
		switch {
		case v == p.self:
		case !ok:
			silent = append(silent, v)
		default:
			// One that knows of a later end of the log raises the bar: with less this node may lack what it confirmed.
			agree++
			if bar.behind(a.Last) {
				bar = a.Last
			}
		}
	}

	// Data that came from elsewhere may be older than the votes that this node gave: all must say what they know.
	if p.moved {
		if len(silent) > 0 {
			return verdict{why: fmt.Errorf("the data directory was moved, copied or restored, and nobody knows whether it is whole: start the nodes %v, or move it away to let the node join as a new one; if they are lost for good, run shoal recover on the node with the newest data", silent)}
		}
		return verdict{proved: true, bar: bar}
	}

	// Who never moved has kept each vote that it gave: the usual majority is enough.
	if agree <= len(voters)/2 {
		return verdict{why: fmt.Errorf("%d of %d voters are there", agree, len(voters))}
	}
	return verdict{proved: true}
}

// proof has this node show that it is itself before it votes, and remembers how
// far the others were, to tell them when they start.
type proof struct {
	*env
	network *network
	replica *replica
	twins   *twins
	memory  *memory
	ballot  *ballot
}

// answer lets the other members ask this one.
func (p *proof) answer() { p.network.handle(methodRecall, p.serveRecall) }

// run asks until this node may vote, or must stop.
func (p *proof) run(ctx context.Context) {
	said := clock.Now()
	for !p.ballot.proved() {
		why := p.once(ctx)
		if why == nil {
			return
		}

		// Raft asks the ballot meanwhile, and names the reason to whoever asks for a vote.
		p.ballot.closed(why)
		if no := refusalIn(why); no != nil {
			p.fail(no)
			return
		}

		// Rounds come ten times a second; the log needs one line of them now and then.
		if clock.Since(said) >= p.scaled(sayTime) {
			said = clock.Now()
			p.log.Warn("this node does not vote yet", "reason", why)
		}

		if !p.pause(ctx, p.scaled(provePause)) {
			return
		}
	}
}

// once asks one round and opens the ballot if all is well.
func (p *proof) once(ctx context.Context) error {
	self := p.network.self
	if self.cluster() == "" {
		return p.open(raftPosition{}) // there is nothing that it could have forgotten
	}
	ctx, cancel := context.WithTimeout(ctx, p.scaled(proveTime))
	defer cancel()

	asker := &prover{
		self:    self.node,
		moved:   self.moved,
		voters:  p.replica.voters,
		ask:     p.recall,
		twins:   p.twins.refuseOwn,
		applied: p.replica.machine.applied.Load,
		own:     p.replica.position,
	}

	v := asker.round(ctx, p.replica.others())
	if !v.proved {
		return v.why
	}
	return p.open(v.bar)
}

// open lets this node vote, and remembers where its log lies now.
func (p *proof) open(bar raftPosition) error {
	// A disk that has no room just now says nothing against this node: it votes when
	// this could be written, and answers meanwhile.
	if err := p.network.self.settle(); err != nil {
		return err
	}
	p.ballot.open(bar)

	// A lone voter with other members has waited for this with its election.
	if p.replica.lone() && p.replica.raft.State() != raft.Leader {
		p.replica.trans.electSelf(p.network.self.node)
	}
	return nil
}

// recall asks a node what it remembers of this one.
func (p *proof) recall(ctx context.Context, node string) (recallReply, error) {
	// The node tells its address too: another start of it at another place is a copy.
	out, err := askStill(ctx, p.replica.far, func(now mark) ([]byte, error) {
		in, err := json.Marshal(recallRequest{Addr: p.network.clusterAddr(), Last: now})
		if err != nil {
			return nil, err
		}
		return p.network.call(ctx, node, methodRecall, in)
	})
	if err != nil {
		return recallReply{}, err
	}

	var r recallReply
	if err := json.Unmarshal(out, &r); err != nil {
		return recallReply{}, fmt.Errorf("cluster: malformed answer of node %s: %w", node, err)
	}
	return r, nil
}

// askStill asks a question that says how far this node is. A log that grows, or
// a term that begins, while the question is on its way is remembered by whoever
// answers, and the question would seem to come from the past: a refusal counts
// only where this node is still as far as the question said.
func askStill(ctx context.Context, far func() mark, ask func(now mark) ([]byte, error)) ([]byte, error) {
	for {
		now := far()
		out, err := ask(now)
		if err == nil || far() == now {
			return out, err
		}

		// An answer that comes as the time ends must not count just because it cannot be asked again.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// serveRecall tells a node that starts what this one knows of it, or refuses it.
func (p *proof) serveRecall(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var r recallRequest
	if err := json.Unmarshal(in, &r); err != nil {
		return nil, errors.New("cluster: malformed question")
	}

	// A copy of a node that runs is mostly an old one too: that it is a copy says more.
	if err := p.twins.refuse(ctx, from, r.Addr); err != nil {
		return nil, err
	}
	if old := p.memory.of(p.network.self.cluster(), from.Node); r.Last.before(old) {
		return nil, refusedOlder(r.Last, old)
	}

	out := recallReply{Last: p.replica.position(), Leader: p.replica.leader()}
	if p.replica.leading.Load() {
		index, err := p.replica.leaderIndex(ctx)
		out.Leads, out.Index = err == nil, index
	}
	return json.Marshal(out)
}

// refusedOlder is the refusal of a node that had more before.
func refusedOlder(now, old mark) error {
	return fmt.Errorf(refusal+"its data directory went back in time, as when an older image was put back: it ends at entry %d of term %d, and had come to entry %d of term %d before; move it away to let the node join as a new one, and `shoal remove` the old one", now.Index, now.Term, old.Index, old.Term)
}

// remember notes how far the others have come, as they tell by gossip: what a
// node has applied was committed, and lay on its disk.
func (p *proof) remember() {
	view, cluster := p.replica.view(), p.network.self.cluster()
	for _, o := range p.network.peers() {
		if m := view.Member(o.Node); o.Alive && o.Cluster == cluster && m != nil && m.Epoch == o.Epoch {
			p.memory.note(cluster, o.Node, mark{o.Load.Applied, o.Term})
		}
	}
}

// keep writes down what is remembered of the others.
func (p *proof) keep() {
	view := p.replica.view()
	if err := p.memory.keep(func(node string) bool { return view.Member(node) != nil }); err != nil {
		p.log.Warn("what is remembered of the other nodes is not kept", "error", err)
	}
}

// meetTwin looks, while the node runs, whether another process with its id has
// come up. The copy is refused wherever it asks; this says where it is. Two
// lone voters ask nobody: there the one that was started later stops.
func (p *proof) meetTwin(ctx context.Context, said *time.Time) {
	// Before it votes it asks about twins in each round of the proof.
	if !p.ballot.proved() {
		return
	}
	twin := p.twins.other(ctx)
	if twin == nil {
		return
	}

	// The one that was started first may have acknowledged writes since.
	if p.replica.lone() && p.twins.earlier() {
		p.fail(refusalIn(twin))
		return
	}
	if said.IsZero() || clock.Since(*said) > p.scaled(sayTime) {
		*said = clock.Now()
		p.log.Error("another process has the identity of this node: its data directory is a copy of this one's: stop that process, and move the copy away", "reason", twin)
	}
}

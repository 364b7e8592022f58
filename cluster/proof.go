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

// How a starting node proves its identity before it votes.
//
// A raft identity is valid only while one process has it, and remembers its promises. A copied data
// directory gives the identity to two processes; an old image makes one forget entries and votes
// that others count on. Either way the cluster could elect a leader that lacks acknowledged writes.
// So a node neither votes nor asks for votes until
//
//	nobody objects       no node remembers a later history of it, and no other
//	                     start of it answers anywhere
//
// and one of these holds:
//
//	a leader feeds it    it has applied everything that was committed when it
//	                     asked, so it has regained whatever it had forgotten
//	a majority agrees    there is no leader, and the log lies in the same file
//	                     as before
//	all voters agree     there is no leader, and it votes only for logs that
//	                     are not behind that of any voter
//
// The last rule is for a directory that was moved, copied or restored. Its log is another file,
// according to the file system (see place). That does not tell the original from the copy, so the
// others are asked. The node waits until all of them answer, a leader appears, or an operator
// recovers: no leader is better than one without acknowledged writes.
//
// Not detectable: a whole machine reset to an older image while all nodes that remember it are
// gone, too. It looks like a machine that lost power at that moment.

const methodRecall = "cluster.recall" // asks a node what it remembers of the caller

// Times at Timing 1.
const (
	provePause = 100 * time.Millisecond // between two rounds of questions
	proveTime  = 2 * time.Second        // for one round
)

// recallRequest is how a starting node describes itself. Its certificate tells its id.
type recallRequest struct {
	Addr string // address for calls
	Last mark   // its last entry and term
}

// recallReply is the answer of another node, unless it refuses.
type recallReply struct {
	Last   raftPosition // end of the answering node's log
	Leader string       // the leader that it knows; "": none
	Leads  bool         // it leads itself, confirmed by a majority
	Index  uint64       // if Leads: the index that the caller must have applied
}

// raftPosition is the end of a log. A log with a later term, or a longer one of the same term, has
// everything committed that the other has.
type raftPosition struct{ Term, Index uint64 }

func (p raftPosition) behind(q raftPosition) bool {
	return p.Term < q.Term || p.Term == q.Term && p.Index < q.Index
}

// ballot decides whether this node takes part in elections. Its methods are safe for concurrent
// use.
type ballot struct {
	state atomic.Pointer[ballotState]
}

type ballotState struct {
	proved bool
	bar    raftPosition // vote only for logs that are not behind it
	why    error        // the reason, while not proved
}

// close keeps the node from voting, and stores why.
func (b *ballot) close(why error) { b.state.Store(&ballotState{why: why}) }

// open lets the node vote for logs that are not behind bar.
func (b *ballot) open(bar raftPosition) { b.state.Store(&ballotState{proved: true, bar: bar}) }

func (b *ballot) proved() bool {
	s := b.state.Load()
	return s != nil && s.proved
}

// allows reports whether this node may vote for a log that ends at p.
func (b *ballot) allows(p raftPosition) bool {
	s := b.state.Load()
	return s != nil && s.proved && !p.behind(s.bar)
}

var errUnproved = errors.New("this node does not vote before it has proved that its data directory is no copy and no old image")

// prover asks the other nodes about this one.
type prover struct {
	self        string
	moved       bool // the log is another file than before
	voters      func() []string
	askRecall   func(ctx context.Context, node string) (recallReply, error)
	twins       func(ctx context.Context) error // returns a refusal if another start of this node answers
	applied     func() uint64
	ownPosition func() raftPosition
}

// verdict is the result of a round of questions.
type verdict struct {
	proved bool
	bar    raftPosition
	why    error // while not proved; a refusal is final
}

// askRound asks all other members once, and returns whether this node has proved its identity.
func (p *prover) askRound(ctx context.Context, others []string) verdict {
	if err := p.twins(ctx); err != nil {
		return verdict{why: err}
	}
	answers, err := p.askAll(ctx, others)
	if err != nil {
		return verdict{why: err}
	}
	return p.judge(answers)
}

// askAll collects the answers, and the first refusal.
func (p *prover) askAll(ctx context.Context, others []string) (map[string]recallReply, error) {
	var mu sync.Mutex
	var refused error
	answers := map[string]recallReply{}

	// Ask concurrently: one absent node would use up the whole round.
	var wg sync.WaitGroup
	for _, node := range others {
		wg.Go(func() {
			a, err := p.askRecall(ctx, node)

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

// judge applies the rules at the top of this file to the other nodes' answers.
func (p *prover) judge(answers map[string]recallReply) verdict {
	leader := ""
	for _, a := range answers {
		// A leader has everything committed. If this node has applied all of it, it lacks nothing
		// that it may have lost.
		if a.Leads {
			if p.applied() >= a.Index {
				return verdict{proved: true}
			}
			return verdict{why: fmt.Errorf("it has applied %d of the leader's %d entries", p.applied(), a.Index)}
		}

		if a.Leader != "" && a.Leader != p.self {
			leader = a.Leader
		}
	}

	if leader != "" {
		return verdict{why: fmt.Errorf("node %s leads and has not answered yet", leader)}
	}

	// There is no leader. Count the voters that do not object, with this node. bar is the newest end
	// of all their logs.
	voters := p.voters()
	agree, bar := 1, p.ownPosition()
	var silent []string
	for _, v := range voters {
		a, ok := answers[v]
		switch {
		case v == p.self:
		case !ok:
			silent = append(silent, v)
		default:
			agree++
			if bar.behind(a.Last) {
				bar = a.Last
			}
		}
	}

	// A moved log may be older than this node's votes: all voters must answer.
	if p.moved {
		if len(silent) > 0 {
			return verdict{why: fmt.Errorf("the data directory was moved, copied or restored, and nobody knows whether it is whole: start the nodes %v. Or move it away to let the node join as a new one. If they are lost for good, run shoal recover on the node with the newest data", silent)}
		}
		return verdict{proved: true, bar: bar}
	}

	// A log that has not moved still has this node's votes, so a majority is enough.
	if agree <= len(voters)/2 {
		return verdict{why: fmt.Errorf("%d of %d voters are there", agree, len(voters))}
	}
	return verdict{proved: true}
}

// proof makes this node prove its identity before it votes. It also remembers how far the other
// nodes were, to tell them when they start.
type proof struct {
	*env
	network *network
	replica *replica
	twins   *twins
	memory  *memory
	ballot  *ballot
}

// registerHandlers registers the handler for other members.
func (p *proof) registerHandlers() { p.network.handle(methodRecall, p.serveRecall) }

// run asks until this node may vote, or must stop.
func (p *proof) run(ctx context.Context) {
	lastLogged := clock.Now()
	for !p.ballot.proved() {
		why := p.proveOnce(ctx)
		if why == nil {
			return
		}

		p.ballot.close(why)
		if refused := refusalIn(why); refused != nil {
			p.fail(refused)
			return
		}

		// Rounds come ten times a second. Log only from time to time.
		if clock.Since(lastLogged) >= p.scaled(sayTime) {
			lastLogged = clock.Now()
			p.log.Warn("this node does not vote yet", "reason", why)
		}

		if !p.pause(ctx, p.scaled(provePause)) {
			return
		}
	}
}

// proveOnce runs one round, and opens the ballot if it succeeds.
func (p *proof) proveOnce(ctx context.Context) error {
	self := p.network.self
	if self.cluster() == "" {
		return p.openBallot(raftPosition{}) // a node without a cluster has nothing to forget
	}
	ctx, cancel := context.WithTimeout(ctx, p.scaled(proveTime))
	defer cancel()

	asker := &prover{
		self:        self.node,
		moved:       self.moved,
		voters:      p.replica.voters,
		askRecall:   p.askRecall,
		twins:       p.twins.refuseOwnTwin,
		applied:     p.replica.machine.applied.Load,
		ownPosition: p.replica.endOfLog,
	}

	v := asker.askRound(ctx, p.replica.otherMembers())
	if !v.proved {
		return v.why
	}
	return p.openBallot(v.bar)
}

// openBallot records where this node's log lies, and lets the node vote for logs that are not behind
// bar. If the disk is full, the next round tries again.
func (p *proof) openBallot(bar raftPosition) error {
	if err := p.network.self.recordPlace(); err != nil {
		return err
	}
	p.ballot.open(bar)

	// A lone voter with other members has delayed its election until now.
	if p.replica.isLoneVoter() && p.replica.raft.State() != raft.Leader {
		p.replica.trans.electSelf(p.network.self.node)
	}
	return nil
}

// askRecall asks a node what it remembers of this node's log.
func (p *proof) askRecall(ctx context.Context, node string) (recallReply, error) {
	// Send the address, too: another start at another address is a copy.
	out, err := askUntilStable(ctx, p.replica.currentMark, func(now mark) ([]byte, error) {
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

// askUntilStable asks a question that contains this node's position, and repeats it while the
// position changes. A node that has already heard of the new position would refuse the old one as
// lost data. So a refusal counts only if the position is still the same.
func askUntilStable(ctx context.Context, position func() mark, ask func(now mark) ([]byte, error)) ([]byte, error) {
	for {
		now := position()
		out, err := ask(now)
		if err == nil || position() == now {
			return out, err
		}

		// At the deadline the question cannot be repeated, so the answer does not count.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// serveRecall tells a starting node what this one knows of it, or refuses it.
func (p *proof) serveRecall(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var r recallRequest
	if err := json.Unmarshal(in, &r); err != nil {
		return nil, errors.New("cluster: malformed question")
	}

	// Check for a copy first. Most copies are old as well, but the operator must learn of the copy.
	if err := p.twins.refuseTwin(ctx, from, r.Addr); err != nil {
		return nil, err
	}
	if old := p.memory.markOf(p.network.self.cluster(), from.Node); r.Last.before(old) {
		return nil, refusedOlder(r.Last, old)
	}

	out := recallReply{Last: p.replica.endOfLog(), Leader: p.replica.leader()}
	if p.replica.leading.Load() {
		index, err := p.replica.leaderIndex(ctx)
		out.Leads, out.Index = err == nil, index
	}
	return json.Marshal(out)
}

// refusedOlder returns the refusal of a node that has lost data.
func refusedOlder(now, old mark) error {
	return fmt.Errorf(refusal+"its data directory went back in time, as when an older image was put back: it ends at entry %d of term %d, and had come to entry %d of term %d before. Move it away to let the node join as a new one, and `shoal remove` the old one", now.Index, now.Term, old.Index, old.Term)
}

// recordPeers remembers how far the other nodes are, by gossip. What a node has applied was committed
// and is on its disk.
func (p *proof) recordPeers() {
	view, cluster := p.replica.view(), p.network.self.cluster()
	for _, o := range p.network.peers() {
		if m := view.Member(o.Node); o.Alive && o.Cluster == cluster && m != nil && m.Epoch == o.Epoch {
			p.memory.recordMark(cluster, o.Node, mark{o.Load.Applied, o.Term})
		}
	}
}

// saveMemory writes the memory of the other nodes to disk.
func (p *proof) saveMemory() {
	view := p.replica.view()
	if err := p.memory.save(func(node string) bool { return view.Member(node) != nil }); err != nil {
		p.log.Warn("what is remembered of the other nodes is not kept", "error", err)
	}
}

// checkTwins checks, while the node runs, whether another process has its id, and logs where, but not
// more often than sayTime. lastLogged is when it last did. The other members refuse the copy. In a cluster
// with one voter nobody does, so there the process that started later stops.
func (p *proof) checkTwins(ctx context.Context, lastLogged *time.Time) {
	// Before it votes, each round of the proof asks about twins.
	if !p.ballot.proved() {
		return
	}
	twin := p.twins.findTwin(ctx)
	if twin == nil {
		return
	}

	// The earlier process may have acknowledged writes since, so it stays.
	if p.replica.isLoneVoter() && p.twins.hasEarlierStart() {
		p.fail(refusalIn(twin))
		return
	}
	if lastLogged.IsZero() || clock.Since(*lastLogged) > p.scaled(sayTime) {
		*lastLogged = clock.Now()
		p.log.Error("another process has the identity of this node: its data directory is a copy of this one's: stop that process, and move the copy away", "reason", twin)
	}
}

package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// ErrNoLeader is returned by Propose when no leader accepted the commands
// within the hold time: no quorum, or an election that does not end. It is
// not known whether commands that were already on their way take effect.
var ErrNoLeader = errors.New("cluster: no leader")

// ErrClosed is returned after Run has ended.
var ErrClosed = errors.New("cluster: closed")

// errNotLeader: the node that was asked to lead does not. The commands had
// no effect there.
var errNotLeader = errors.New("cluster: not the leader")

// ownKinds are the kinds of errors that travel between nodes as those of this
// package.
var ownKinds = []Kind{
	{Name: "disputed", Err: ErrDisputed}, // before no-leader, which it is too
	{Name: "no-leader", Err: ErrNoLeader},
	{Name: "not-leader", Err: errNotLeader},
	{Name: "closed", Err: ErrClosed},
}

// Methods of calls between the nodes of a cluster.
const (
	methodPropose = "cluster.propose"
	methodSync    = "cluster.sync"
	methodApplied = "cluster.applied"
	methodLeader  = "cluster.leader"
)

// retryPause is how long a write waits before it asks for a leader again when
// nothing tells it earlier.
const retryPause = 50 * time.Millisecond

// proposer has the leader commit what this node wants, and commits what others
// want while this node leads. Its methods are safe for concurrent use.
type proposer struct {
	*env
	network *network
	replica *replica
	time    *agreedTime   // the clock of what this node commits
	hold    time.Duration // how long a write waits for a leader
	seal    func([]catalog.Command) ([]catalog.Command, error)
	audit   func() Audit
	stopped func() bool  // this node leads, and may commit nothing but what belongs to members
	given   func() error // why this node's cluster takes no writes any more; nil while it does

	transferring atomic.Pointer[time.Time] // since when raft refuses writes for a transfer of leadership; nil when it does not
}

// answer lets the other members ask this one.
func (p *proposer) answer() {
	p.network.handle(methodPropose, p.servePropose)
	p.network.handle(methodSync, p.serveSync)
	p.network.handle(methodApplied, p.serveApplied)
	p.network.handle(methodLeader, func(context.Context, Peer, []byte) ([]byte, error) { return []byte(p.replica.leader()), nil })
}

// propose is [Cluster.Propose].
func (p *proposer) propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	index, results, err := p.proposeAll(ctx, cmds...)
	if err != nil {
		return index, err
	}
	for i, r := range results {
		if r.Err != nil {
			return index, fmt.Errorf("%s: %w", catalog.CommandName(cmds[i]), r.Err)
		}
	}
	return index, nil
}

// proposeAll is [Cluster.ProposeAll].
func (p *proposer) proposeAll(ctx context.Context, cmds ...catalog.Command) (index uint64, results []catalog.Result, err error) {
	began := clock.Now()
	defer func() {
		result := "ok"
		if err != nil {
			result = "failed"
		}
		observe(p.replica.metrics.proposed.WithLabelValues(result), began)
	}()

	if why := p.given(); why != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrNoLeader, why)
	}

	if no := p.replica.view().Level().Allows(cmds); no != nil {
		return 0, nil, no
	}

	// Secrets stand in the log as only the members can open them.
	if cmds, err = p.seal(cmds); err != nil {
		return 0, nil, err
	}

	// Who asks stands in the entry, before what they ask for; its result is nobody's.
	if said, ok := p.attribution(ctx, cmds); ok {
		cmds = append([]catalog.Command{said}, cmds...)
		defer func() { results = results[min(1, len(results)):] }()
	}
	e := catalog.Entry{Node: p.network.self.node, Commands: cmds}

	// By this id a retry is known: the catalog applies the entry once.
	rand.Read(e.Request[:])
	data, err := e.Encode()
	if err != nil {
		return 0, nil, fmt.Errorf("cluster: propose: %w", err)
	}
	return p.insist(ctx, data)
}

// attribution says who asks for commands that leave events: whom the context
// names, else this node.
func (p *proposer) attribution(ctx context.Context, cmds []catalog.Command) (*catalog.Attribute, bool) {
	// Most of what nodes do by themselves leaves no event: it would bury what people do.
	who, known := catalog.ActorOf(ctx)
	if !known {
		who = catalog.Actor{Type: catalog.ActorSystem, ID: p.network.self.node}
	}
	if !catalog.Audited(cmds, who.Type != catalog.ActorSystem) {
		return nil, false
	}
	rule := p.audit()
	if rule.Off {
		return nil, false
	}
	return &catalog.Attribute{Actor: who, Keep: rule.Keep}, true
}

// insist sends an entry to the leader until it is committed, or the hold time is
// over, and waits until this node has applied it.
func (p *proposer) insist(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()
	var last error
	for {
		index, results, err := p.proposeOnce(ctx, data)
		switch {
		case err == nil:
			return index, results, p.await(ctx, index)
		case errors.Is(err, ErrClosed) || errors.Is(err, errStuck) || errors.Is(err, ErrDisputed):
			return 0, nil, err
		}

		// An error of the deadline says less than the one before.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !p.pause(ctx, retryPause) {
			return 0, nil, fmt.Errorf("%w: %w", ErrNoLeader, last)
		}
	}
}

func (p *proposer) proposeOnce(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	leader, err := p.findLeader(ctx)
	if err != nil {
		return 0, nil, err
	}

	// The leader needs no call to itself.
	if leader == p.network.self.node {
		return p.lead(ctx, data)
	}

	// The call ends with the leadership: who has lost it may never answer.
	ctx, cancel := p.whileSameLeader(ctx)
	defer cancel()

	out, err := p.network.call(ctx, leader, methodPropose, data)
	if err != nil {
		return 0, nil, err
	}
	return catalog.DecodeReply(out)
}

// whileSameLeader ends a context when raft tells this node of another leader,
// or of none: a leader that has vanished without a word would hold a call up
// until its deadline, while the next one is there.
func (p *proposer) whileSameLeader(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	before := p.replica.leader()

	// Looked at again and again: raft tells of changes to one reader, and of its own lead only.
	var watch sync.WaitGroup
	watch.Go(func() {
		for p.replica.leader() == before && p.pause(ctx, retryPause) {
		}
		cancel()
	})
	return ctx, func() {
		cancel()
		watch.Wait()
	}
}

// lead commits an entry as the leader. Its time is the agreed one.
func (p *proposer) lead(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	if p.stopped() && !betweenNodes(data) {
		return 0, nil, ErrDisputed
	}
	data, err := catalog.Stamp(data, p.time.now())
	if err != nil {
		return 0, nil, err
	}

	// Raft answers when a majority has the entry and this node has applied it.
	f := p.replica.raft.Apply(data, timeLeft(ctx))
	err = wait(ctx, f)
	p.noteTransfer(err)
	if err != nil {
		return 0, nil, raftError(err)
	}

	switch r := f.Response().(type) {
	// Not the index of this try: what the first one wrote bears its own, as a fence.
	case took:
		return r.index, r.results, nil
	case error:
		return 0, nil, r
	}
	return 0, nil, errStuck
}

// betweenNodes reports whether an entry has to do with the nodes alone: they come and go
// also while no majority has one catalog, since that is how it ends.
func betweenNodes(data []byte) bool {
	e, err := catalog.DecodeEntry(0, data)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(e.Commands, func(c catalog.Command) bool {
		switch c.(type) {
		case *catalog.PutMember, *catalog.SetMemberState, *catalog.RemoveMember, *catalog.CheckHash, *catalog.Noop, *catalog.Attribute:
			return false
		}
		return true
	})
}

// noteTransfer remembers since when writes fail because of a transfer of
// leadership, which in raft may never end.
func (p *proposer) noteTransfer(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := clock.Now()
		p.transferring.CompareAndSwap(nil, &now)
		return
	}
	p.transferring.Store(nil)
}

// raftError gives raft's errors the names that are known here.
func raftError(err error) error {
	switch {
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", errNotLeader, err)
	}
	return err
}

func timeLeft(ctx context.Context) time.Duration {
	if left, ok := clock.Left(ctx); ok {
		return max(left, time.Millisecond)
	}
	return 0
}

// wait waits for a future of raft as long as the context lasts. The
// future goes on after that: its outcome is then not known. Who waits for it
// here ends with the future, which has no other way to be asked, and raft
// leaves some without an answer when it shuts down: so nobody can wait for this
// goroutine. It holds the future and nothing else.
func wait(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// servePropose commits an entry that another node has made.
func (p *proposer) servePropose(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	// Once it is committed every node has to apply it or stop. What a later
	// version sent, or a mistake, must not come so far.
	e, err := catalog.DecodeEntry(0, in)
	if err != nil {
		return nil, err
	}
	if no := p.replica.view().Level().Allows(e.Commands); no != nil {
		return nil, no
	}

	index, results, err := p.lead(ctx, in)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, results), nil
}

// await waits until this node has applied an index.
func (p *proposer) await(ctx context.Context, index uint64) error {
	return p.replica.machine.await(ctx, index)
}

// awaitOn is [Cluster.AwaitOn].
func (p *proposer) awaitOn(ctx context.Context, index uint64, nodes ...string) (behind []string) {
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()

	// All at once: the slowest alone decides how long it takes.
	applied := make([]bool, len(nodes))
	var wg sync.WaitGroup
	// A dead one would cost the whole time, and is behind in any case.
	for i, node := range nodes {
		if !p.network.alive(node) {
			continue
		}
		wg.Go(func() {
			_, err := p.network.call(ctx, node, methodApplied, catalog.EncodeReply(index, nil))
			applied[i] = err == nil
		})
	}
	wg.Wait()

	for i, node := range nodes {
		if !applied[i] {
			behind = append(behind, node)
		}
	}
	return behind
}

// serveApplied answers once this node has applied the index asked for.
func (p *proposer) serveApplied(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	index, _, err := catalog.DecodeReply(in)
	if err != nil {
		return nil, err
	}
	return nil, p.await(ctx, index)
}

// sync is [Cluster.Sync].
func (p *proposer) sync(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()
	for {
		index, err := p.syncOnce(ctx)
		if err == nil {
			return index, p.await(ctx, index)
		}
		if !p.pause(ctx, retryPause) {
			return 0, fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
	}
}

func (p *proposer) syncOnce(ctx context.Context) (uint64, error) {
	leader, err := p.findLeader(ctx)
	if err != nil {
		return 0, err
	}

	if leader == p.network.self.node {
		return p.replica.leaderIndex(ctx)
	}

	// Where another leads meanwhile, the answer of this one is of no use: the call ends.
	ctx, cancel := p.whileSameLeader(ctx)
	defer cancel()

	out, err := p.network.call(ctx, leader, methodSync, nil)
	if err != nil {
		return 0, err
	}
	index, _, err := catalog.DecodeReply(out)
	return index, err
}

func (p *proposer) serveSync(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
	index, err := p.replica.leaderIndex(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, nil), nil
}

// findLeader is the leader as raft knows it, or as another member does: a
// node that raft does not feed any more hears of no leader itself.
func (p *proposer) findLeader(ctx context.Context) (string, error) {
	if leader := p.replica.leader(); leader != "" {
		return leader, nil
	}
	return p.askForLeader(ctx)
}

// askForLeader asks all members at once who leads: one that does not answer
// must not hold up those that know.
func (p *proposer) askForLeader(ctx context.Context) (string, error) {
	var calls sync.WaitGroup
	defer calls.Wait() // after cancel
	ctx, cancel := context.WithTimeout(ctx, p.scaled(formTime))
	defer cancel()

	type said struct {
		leader string
		err    error
	}

	var asked []string
	for _, m := range p.network.peers() {
		if m.Alive && m.Cluster == p.network.self.cluster() {
			asked = append(asked, m.Node)
		}
	}

	answers := make(chan said, len(asked))
	for _, node := range asked {
		calls.Go(func() {
			out, err := p.network.call(ctx, node, methodLeader, nil)
			answers <- said{string(out), err}
		})
	}

	// The first that knows is enough; what the others say is not waited for.
	last := ErrNoLeader
	for range asked {
		switch a := <-answers; {
		case a.err != nil:
			last = a.err
		case a.leader != "":
			return a.leader, nil
		}
	}
	return "", last
}

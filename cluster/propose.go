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
	"github.com/shoalsearch/shoal/cluster/wire"
)

// ErrNoLeader is returned by Propose if no leader accepted the commands within the hold time: there
// is no quorum, or an election does not end. The commands have no effect, unless it is
// [ErrUnconfirmed].
var ErrNoLeader = errors.New("cluster: no leader")

// ErrUnconfirmed is an [ErrNoLeader] of commands that a leader may have taken before it stopped
// answering. They may still take effect.
var ErrUnconfirmed = fmt.Errorf("%w: not confirmed", ErrNoLeader)

// ErrClosed is returned after Run has ended.
var ErrClosed = errors.New("cluster: closed")

// errNotLeader is returned by a node that was called as leader but does not lead. The commands had
// no effect there.
var errNotLeader = errors.New("cluster: not the leader")

// ownKinds are the errors of this package that keep their identity between nodes.
var ownKinds = []Kind{
	{Name: "disputed", Err: ErrDisputed}, // before no-leader, which it wraps, as the next does
	{Name: "unconfirmed", Err: ErrUnconfirmed},
	{Name: "no-leader", Err: ErrNoLeader},
	{Name: "not-leader", Err: errNotLeader},
	{Name: "closed", Err: ErrClosed},
}

// Methods between members.
const (
	methodPropose = "cluster.propose"
	methodSync    = "cluster.sync"
	methodApplied = "cluster.applied"
	methodLeader  = "cluster.leader"
)

// retryPause is how long a write waits before it looks for a leader again.
const retryPause = 50 * time.Millisecond

// proposer sends this node's entries to the leader, and commits entries while this node leads. Its
// methods are safe for concurrent use.
type proposer struct {
	*env
	network  *network
	replica  *replica
	time     *agreedTime   // clock for stamping entries
	hold     time.Duration // how long a write waits for a leader
	seal     func([]catalog.Command) ([]catalog.Command, error)
	audit    func() Audit
	disputed func() bool  // whether this leader may commit only changes of members
	replaced func() error // why this node's cluster was replaced and takes no writes; nil while it does

	transferring atomic.Pointer[time.Time] // since when raft refuses writes for a transfer of leadership; nil: no transfer
}

// registerHandlers registers the handlers for other members.
func (p *proposer) registerHandlers() {
	p.network.handle(methodPropose, p.servePropose)
	p.network.handle(methodSync, p.serveSync)
	p.network.handle(methodApplied, p.serveApplied)
	p.network.handle(methodLeader, func(context.Context, Peer, []byte) ([]byte, error) { return []byte(p.replica.leader()), nil })
}

// propose implements [Cluster.Propose].
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

// proposeAll implements [Cluster.ProposeAll].
func (p *proposer) proposeAll(ctx context.Context, cmds ...catalog.Command) (index uint64, results []catalog.Result, err error) {
	began := clock.Now()
	defer func() {
		result := "ok"
		if err != nil {
			result = "failed"
		}
		observe(p.replica.metrics.proposed.WithLabelValues(result), began)
	}()

	if why := p.replaced(); why != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrNoLeader, why)
	}

	if refused := p.replica.view().Level().Allows(cmds); refused != nil {
		return 0, nil, refused
	}

	// Seal secrets: only members may read them in the log.
	if cmds, err = p.seal(cmds); err != nil {
		return 0, nil, err
	}

	// The command that names the actor goes first in the entry. The caller does not see its result.
	if actor, ok := p.attribution(ctx, cmds); ok {
		cmds = append([]catalog.Command{actor}, cmds...)
		defer func() { results = results[min(1, len(results)):] }()
	}
	e := catalog.Entry{Node: p.network.self.node, Commands: cmds}

	// A retry has the same id, so the catalog applies the entry only once.
	rand.Read(e.Request[:])
	data, err := e.Encode()
	if err != nil {
		return 0, nil, fmt.Errorf("cluster: propose: %w", err)
	}
	return p.proposeUntilCommitted(ctx, data)
}

// attribution returns the command that names the actor, if the commands leave events: the actor in
// the context, otherwise this node.
func (p *proposer) attribution(ctx context.Context, cmds []catalog.Command) (*catalog.Attribute, bool) {
	// Most commands of nodes leave no event, so that the events of people can be found.
	actor, known := catalog.ActorOf(ctx)
	if !known {
		actor = catalog.Actor{Type: catalog.ActorSystem, ID: p.network.self.node}
	}
	if !catalog.Audited(cmds, actor.Type != catalog.ActorSystem) {
		return nil, false
	}
	rule := p.audit()
	if rule.Off {
		return nil, false
	}
	return &catalog.Attribute{Actor: actor, Keep: rule.Keep}, true
}

// proposeUntilCommitted sends an entry to the leader until it is committed or the hold time ends.
// It then waits until this node has applied it.
func (p *proposer) proposeUntilCommitted(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()
	var last error
	kind := ErrNoLeader
	for {
		index, results, sent, err := p.proposeOnce(ctx, data)
		switch {
		case err == nil:
			return index, results, p.await(ctx, index)
		case errors.Is(err, ErrClosed) || errors.Is(err, errStuck) || errors.Is(err, ErrDisputed):
			return 0, nil, err
		}

		// A deadline error tells less than the error before it.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if sent {
			kind = ErrUnconfirmed
		}
		if !p.pause(ctx, retryPause) {
			return 0, nil, fmt.Errorf("%w: %w", kind, last)
		}
	}
}

// proposeOnce sends an entry to the leader once, or commits it if this node leads. After an error,
// sent says that the entry may still take effect.
func (p *proposer) proposeOnce(ctx context.Context, data []byte) (index uint64, results []catalog.Result, sent bool, err error) {
	leader, err := p.findLeader(ctx)
	if err != nil {
		return 0, nil, false, err
	}

	// The leader does not call itself.
	if leader == p.network.self.node {
		index, results, err = p.commitAsLeader(ctx, data)
	} else {
		index, results, err = p.callLeader(ctx, leader, data)
	}
	return index, results, !errors.Is(err, errNotLeader) && !errors.Is(err, wire.ErrUnreachable), err
}

// callLeader sends an entry to the leader.
func (p *proposer) callLeader(ctx context.Context, leader string, data []byte) (uint64, []catalog.Result, error) {
	// Stop waiting when the leadership changes: a lost leader may never answer.
	ctx, cancel := p.whileSameLeader(ctx)
	defer cancel()

	out, err := p.network.call(ctx, leader, methodPropose, data)
	if err != nil {
		return 0, nil, err
	}
	return catalog.DecodeReply(out)
}

// whileSameLeader returns a context that ends when this node sees another leader, or none. A
// vanished leader would otherwise block a call until its deadline.
func (p *proposer) whileSameLeader(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	before := p.replica.leader()

	// Poll: raft reports leadership changes to one reader only.
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

// commitAsLeader commits an entry as the leader, stamped with the agreed time.
func (p *proposer) commitAsLeader(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	if p.disputed() && !concernsOnlyNodes(data) {
		return 0, nil, ErrDisputed
	}
	data, err := catalog.Stamp(data, p.time.now())
	if err != nil {
		return 0, nil, err
	}

	// Raft answers when a majority has the entry and this node has applied it.
	f := p.replica.raft.Apply(data, timeLeft(ctx))
	err = waitFuture(ctx, f)
	p.recordTransfer(err)
	if err != nil {
		return 0, nil, translateRaftError(err)
	}

	switch r := f.Response().(type) {
	// Return the index of the first try: it is the fence of what the entry wrote.
	case outcome:
		return r.index, r.results, nil
	case error:
		return 0, nil, r
	}
	return 0, nil, errStuck
}

// concernsOnlyNodes reports whether an entry only changes the members, or compares catalogs. Such
// entries are committed even while the catalogs differ, because an operator ends that by changing the
// members.
func concernsOnlyNodes(data []byte) bool {
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

// recordTransfer records since when writes fail because of a leadership transfer, which in raft may
// never end.
func (p *proposer) recordTransfer(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := clock.Now()
		p.transferring.CompareAndSwap(nil, &now)
		return
	}
	p.transferring.Store(nil)
}

// translateRaftError translates raft's errors to those of this package.
func translateRaftError(err error) error {
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

// waitFuture waits for a raft future as long as the context lasts. After that the future continues
// with an unknown outcome. The goroutine ends with the future. Raft leaves some futures unanswered
// at shutdown, so nobody may wait for this goroutine.
func waitFuture(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// servePropose commits an entry of another node.
func (p *proposer) servePropose(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	// Once it is committed, every node must apply it or stop. So reject an entry from a later
	// version, or a broken one, now.
	e, err := catalog.DecodeEntry(0, in)
	if err != nil {
		return nil, err
	}
	if refused := p.replica.view().Level().Allows(e.Commands); refused != nil {
		return nil, refused
	}

	index, results, err := p.commitAsLeader(ctx, in)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, results), nil
}

// await waits until this node has applied an index.
func (p *proposer) await(ctx context.Context, index uint64) error {
	return p.replica.machine.await(ctx, index)
}

// awaitOn implements [Cluster.AwaitOn].
func (p *proposer) awaitOn(ctx context.Context, index uint64, nodes ...string) (behind []string) {
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()

	// Ask concurrently, so that only the slowest counts. A dead node would cost the whole time.
	applied := make([]bool, len(nodes))
	var wg sync.WaitGroup
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

// serveApplied answers once this node has applied an index.
func (p *proposer) serveApplied(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	index, _, err := catalog.DecodeReply(in)
	if err != nil {
		return nil, err
	}
	return nil, p.await(ctx, index)
}

// sync implements [Cluster.Sync].
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

// syncOnce asks the leader once for the index that covers all writes acknowledged before.
func (p *proposer) syncOnce(ctx context.Context) (uint64, error) {
	leader, err := p.findLeader(ctx)
	if err != nil {
		return 0, err
	}

	if leader == p.network.self.node {
		return p.replica.leaderIndex(ctx)
	}

	// Stop waiting when the leadership changes, because the answer would not count.
	ctx, cancel := p.whileSameLeader(ctx)
	defer cancel()

	out, err := p.network.call(ctx, leader, methodSync, nil)
	if err != nil {
		return 0, err
	}
	index, _, err := catalog.DecodeReply(out)
	return index, err
}

// serveSync returns the leader's index to another node.
func (p *proposer) serveSync(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
	index, err := p.replica.leaderIndex(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, nil), nil
}

// findLeader returns the leader that raft knows, or that another member knows. A node that raft no
// longer feeds does not hear of the leader itself.
func (p *proposer) findLeader(ctx context.Context) (string, error) {
	if leader := p.replica.leader(); leader != "" {
		return leader, nil
	}
	return p.askForLeader(ctx)
}

// askForLeader asks all members concurrently who leads: a silent member must not delay the answer.
func (p *proposer) askForLeader(ctx context.Context) (string, error) {
	var calls sync.WaitGroup
	defer calls.Wait() // runs after cancel
	ctx, cancel := context.WithTimeout(ctx, p.scaled(formTime))
	defer cancel()

	type answer struct {
		leader string
		err    error
	}

	var members []string
	for _, m := range p.network.peers() {
		if m.Alive && m.Cluster == p.network.self.cluster() {
			members = append(members, m.Node)
		}
	}

	answers := make(chan answer, len(members))
	for _, node := range members {
		calls.Go(func() {
			out, err := p.network.call(ctx, node, methodLeader, nil)
			answers <- answer{string(out), err}
		})
	}

	// The first answer with a leader is enough.
	last := ErrNoLeader
	for range members {
		switch a := <-answers; {
		case a.err != nil:
			last = a.err
		case a.leader != "":
			return a.leader, nil
		}
	}
	return "", last
}

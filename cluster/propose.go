package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

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

// Methods of calls between the nodes of a cluster.
const (
	methodPropose = "cluster.propose"
	methodSync    = "cluster.sync"
)

// retryPause is how long a write waits before it asks for a leader again when
// nothing tells it earlier.
const retryPause = 50 * time.Millisecond

// Propose sends commands as one entry to the leader, waits until this node
// has applied it, and returns its index. An error that wraps
// *catalog.Refusal says that a command was refused; the others of the
// entry were still applied. ErrNoLeader is returned after the hold time.
func (c *Cluster) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	index, results, err := c.ProposeAll(ctx, cmds...)
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

// ProposeAll is Propose with the result of each command. The error is only
// about getting the entry committed.
//
// A write that fails on its way is sent again under the same request id,
// which the catalog remembers: it takes effect once.
func (c *Cluster) ProposeAll(ctx context.Context, cmds ...catalog.Command) (index uint64, results []catalog.Result, err error) {
	began := time.Now()
	defer func() {
		result := "ok"
		if err != nil {
			result = "failed"
		}
		observe(c.metrics.proposed.WithLabelValues(result), began)
	}()
	return c.proposeAll(ctx, cmds)
}

func (c *Cluster) proposeAll(ctx context.Context, cmds []catalog.Command) (uint64, []catalog.Result, error) {
	e := catalog.Entry{Node: c.id.NodeID, Commands: cmds}
	rand.Read(e.Request[:])
	data, err := e.Encode()
	if err != nil {
		return 0, nil, fmt.Errorf("cluster: propose: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.HoldTime)
	defer cancel()
	var last error
	for {
		index, results, err := c.proposeOnce(ctx, data)
		switch {
		case err == nil:
			return index, results, c.Await(ctx, index)
		case errors.Is(err, ErrClosed) || errors.Is(err, errStuck):
			return 0, nil, err
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !c.pause(ctx, retryPause) {
			return 0, nil, fmt.Errorf("%w: %w", ErrNoLeader, last)
		}
	}
}

// pause waits, and reports false when the context or the cluster ended.
func (c *Cluster) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-c.closed:
	}
	return false
}

func (c *Cluster) proposeOnce(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	leader, err := c.findLeader(ctx)
	if err != nil {
		return 0, nil, err
	}
	if leader == c.id.NodeID {
		return c.lead(ctx, data)
	}
	ctx, cancel := c.whileSameLeader(ctx)
	defer cancel()
	out, err := c.Call(ctx, leader, methodPropose, data)
	if err != nil {
		return 0, nil, err
	}
	return catalog.DecodeReply(out)
}

// whileSameLeader ends a context when raft tells this node of another leader,
// or of none: a leader that has vanished without a word would hold a call up
// until its deadline, while the next one is there.
func (c *Cluster) whileSameLeader(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	before := c.Leader()
	go func() {
		for c.Leader() == before && c.pause(ctx, retryPause) {
		}
		cancel()
	}()
	return ctx, cancel
}

// lead commits an entry as the leader. Its time is the leader's.
func (c *Cluster) lead(ctx context.Context, data []byte) (uint64, []catalog.Result, error) {
	e, err := catalog.DecodeEntry(0, data)
	if err != nil {
		return 0, nil, err
	}
	e.At = c.o.Now()
	if data, err = e.Encode(); err != nil {
		return 0, nil, err
	}
	f := c.raft.Apply(data, timeLeft(ctx))
	err = wait(ctx, f)
	c.noteTransfer(err)
	if err != nil {
		return 0, nil, raftError(err)
	}
	switch r := f.Response().(type) {
	case []catalog.Result:
		return f.Index(), r, nil
	case error:
		return 0, nil, r
	}
	return 0, nil, errStuck
}

// noteTransfer remembers since when writes fail because of a transfer of
// leadership, which in raft may never end.
func (c *Cluster) noteTransfer(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		c.transferring.CompareAndSwap(0, time.Now().UnixNano())
		return
	}
	c.transferring.Store(0)
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
	if deadline, ok := ctx.Deadline(); ok {
		return max(time.Until(deadline), time.Millisecond)
	}
	return 0
}

// wait waits for a future of raft as long as the context lasts. The
// future goes on after that: its outcome is then not known.
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

func (c *Cluster) servePropose(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	index, results, err := c.lead(ctx, in)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, results), nil
}

// Await waits until this node has applied an index.
func (c *Cluster) Await(ctx context.Context, index uint64) error { return c.machine.await(ctx, index) }

// Sync returns an index that is not older than any write acknowledged before
// the call, after this node has applied it. It needs a leader: ErrNoLeader
// is returned after the hold time.
func (c *Cluster) Sync(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.HoldTime)
	defer cancel()
	for {
		index, err := c.syncOnce(ctx)
		if err == nil {
			return index, c.Await(ctx, index)
		}
		if !c.pause(ctx, retryPause) {
			return 0, fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
	}
}

func (c *Cluster) syncOnce(ctx context.Context) (uint64, error) {
	leader, err := c.findLeader(ctx)
	if err != nil {
		return 0, err
	}
	if leader == c.id.NodeID {
		return c.leaderIndex(ctx)
	}
	ctx, cancel := c.whileSameLeader(ctx)
	defer cancel()
	out, err := c.Call(ctx, leader, methodSync, nil)
	if err != nil {
		return 0, err
	}
	index, _, err := catalog.DecodeReply(out)
	return index, err
}

// leaderIndex is the index that a linearizable read must see. The leader has
// applied an entry of its own term, so it has all that was acknowledged in
// earlier ones; what is acknowledged in this term it has applied before; and
// a quorum says that there is no later leader.
func (c *Cluster) leaderIndex(ctx context.Context) (uint64, error) {
	if !c.Leading() {
		return 0, errNotLeader
	}
	index := c.machine.applied.Load()
	if err := wait(ctx, c.raft.VerifyLeader()); err != nil {
		return 0, raftError(err)
	}
	return index, nil
}

func (c *Cluster) serveSync(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
	index, err := c.leaderIndex(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.EncodeReply(index, nil), nil
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/shoalsearch/shoal/cluster/gossip"
	"github.com/shoalsearch/shoal/cluster/wire"
)

const methodEpoch = "cluster.epoch" // returns the epoch of the answering node

// twins detects processes that share an identity, because one runs on a copy of the other's data
// directory. Its methods are safe for concurrent use.
type twins struct {
	*env
	network *network
}

// registerHandlers registers the handler for other members.
func (t *twins) registerHandlers() {
	t.network.handle(methodEpoch, func(context.Context, Peer, []byte) ([]byte, error) { return fmt.Append(nil, t.network.self.epoch), nil })
}

// refuseTwin returns a refusal if the caller seems to run on a copy of another process's data
// directory: another start of its node answers at one of the node's known addresses. addr is where
// the caller runs.
func (t *twins) refuseTwin(ctx context.Context, from Peer, addr string) error {
	if from.Node == t.network.self.node && from.Epoch != t.network.self.epoch {
		return twinRefusal(from.Node, t.network.clusterAddr())
	}

	// Each check has half of a round. No answer in that time proves nothing.
	for _, other := range t.rivalStarts(from.Node, from.Epoch, addr) {
		bounded, cancel := context.WithTimeout(ctx, t.scaled(proveTime)/2)
		out, err := t.network.port.Call(bounded, wire.Target{Node: from.Node, Addr: other.addr}, methodEpoch, nil)
		cancel()
		if refused := other.refusalFor(from, string(out), err); refused != nil {
			return refused
		}
	}
	return nil
}

// sighting is an address at which another start of a node was seen.
type sighting struct {
	addr  string
	alive bool // according to gossip
}

// refusalFor returns why the calling start of a node is not accepted, or nil. answer is the epoch that
// the process at the sighting has sent, or err tells why there is no answer. A live process may just be slow to
// answer, so then the refusal is temporary.
func (s sighting) refusalFor(from Peer, answer string, err error) error {
	switch {
	case err == nil && answer != fmt.Sprint(from.Epoch):
		return twinRefusal(from.Node, s.addr)
	case err != nil && s.alive && !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cluster: it is not known yet whether node %s runs at %s too: %w", from.Node, s.addr, err)
	}
	return nil
}

func twinRefusal(node, addr string) error {
	return fmt.Errorf(refusal+"node %s runs already, at %s: the data directory was copied; move one of the two away", node, addr)
}

// refuseOwnTwin checks, before this node votes, whether another process has its identity. In a cluster
// without other members only that process can object.
func (t *twins) refuseOwnTwin(ctx context.Context) error {
	self, addr := t.network.self, t.network.clusterAddr()
	for m := range t.network.view().Members() {
		if m.ID != self.node {
			return t.askSightings(ctx, t.rivalStarts(self.node, self.epoch, addr))
		}
	}
	return t.askSightings(ctx, t.otherStarts(self.node, self.epoch, addr))
}

// findTwin returns where another process has this node's identity, or nil.
func (t *twins) findTwin(ctx context.Context) error {
	self := t.network.self
	return t.askSightings(ctx, t.otherStarts(self.node, self.epoch, t.network.clusterAddr()))
}

// askSightings calls known addresses of this node. It returns a refusal if another process answers
// there under this node's id.
func (t *twins) askSightings(ctx context.Context, sightings []sighting) error {
	self := t.network.self
	for _, other := range sightings {
		bounded, cancel := context.WithTimeout(ctx, t.scaled(proveTime)/2)
		_, err := t.network.port.CallJoin(bounded, wire.Target{Node: self.node, Addr: other.addr}, methodAttempt, nil)
		cancel()
		if errors.Is(err, wire.ErrTwin) {
			return twinRefusal(self.node, other.addr)
		}
	}
	return nil
}

// hasEarlierStart reports whether gossip sees an earlier start of this node.
func (t *twins) hasEarlierStart() bool {
	starts := t.network.gossip.Starts(t.network.self.node)
	return slices.ContainsFunc(starts, func(p gossip.Peer) bool { return p.Alive && p.Epoch < t.network.self.epoch })
}

// rivalStarts returns the other starts of a node that may be the original, while the one at addr is
// the copy. If the catalog names addr for the node, there is none. Otherwise an original and its copy
// that start together would refuse each other, and both would stop.
func (t *twins) rivalStarts(node string, epoch uint64, addr string) []sighting {
	if m := t.network.view().Member(node); m != nil && m.Addr == addr {
		return nil
	}
	return t.otherStarts(node, epoch, addr)
}

// otherStarts returns all starts of a node except that of epoch at addr, each address once.
func (t *twins) otherStarts(node string, epoch uint64, addr string) []sighting {
	var out []sighting
	add := func(e uint64, a string, alive bool) {
		if e != epoch && a != "" && a != addr && !slices.ContainsFunc(out, func(s sighting) bool { return s.addr == a }) {
			out = append(out, sighting{a, alive})
		}
	}

	// Add the starts that gossip sees, then the start in the catalog.
	for _, g := range t.network.gossip.Starts(node) {
		var m meta
		if g.Alive && json.Unmarshal(g.Meta, &m) == nil {
			add(g.Epoch, m.Addr, true)
		}
	}

	if m := t.network.view().Member(node); m != nil {
		add(m.Epoch, m.Addr, false)
	}
	return out
}

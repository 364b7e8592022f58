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

const methodEpoch = "cluster.epoch" // which start of a node answers

// twins finds processes that share an identity, since the data directory of one
// is a copy of the other's. Its methods are safe for concurrent use.
type twins struct {
	*env
	network *network
}

// answer lets the other members ask this one.
func (t *twins) answer() {
	t.network.handle(methodEpoch, func(context.Context, Peer, []byte) ([]byte, error) { return fmt.Append(nil, t.network.self.epoch), nil })
}

// refuse keeps a copy of a data directory from taking over from the
// original: a start at another address is only believed when no other start
// of the node answers where it was last heard of.
func (t *twins) refuse(ctx context.Context, from Peer, addr string) error {
	if from.Node == t.network.self.node && from.Epoch != t.network.self.epoch {
		return twinRefusal(from.Node, t.network.clusterAddr())
	}

	// Each has half of a round: of one that does not answer by then nothing is known yet.
	for _, other := range t.rivals(from.Node, from.Epoch, addr) {
		bounded, cancel := context.WithTimeout(ctx, t.scaled(proveTime)/2)
		out, err := t.network.port.Call(bounded, wire.Target{Node: from.Node, Addr: other.addr}, methodEpoch, nil)
		cancel()
		if no := other.verdict(from, string(out), err); no != nil {
			return no
		}
	}
	return nil
}

// sighting is where another start of a node was heard of.
type sighting struct {
	addr  string
	alive bool // gossip hears of it still
}

// verdict says why a start of a node is not believed, given what was answered
// where another one was seen: which start that is, or an error. Where a process
// is that does not answer now, as when its machine is slow, nothing is known
// yet; the refusal is not for good.
func (s sighting) verdict(from Peer, answer string, err error) error {
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

// refuseOwn asks, before this node votes, whether another process is this node.
// Where the cluster has no other member, nobody but that process can say no.
func (t *twins) refuseOwn(ctx context.Context) error {
	self, addr := t.network.self, t.network.clusterAddr()
	for m := range t.network.view().Members() {
		if m.ID != self.node {
			return t.meet(ctx, t.rivals(self.node, self.epoch, addr))
		}
	}
	return t.meet(ctx, t.others(self.node, self.epoch, addr))
}

// other says where another process has the identity of this one, if any has.
func (t *twins) other(ctx context.Context) error {
	self := t.network.self
	return t.meet(ctx, t.others(self.node, self.epoch, t.network.clusterAddr()))
}

// meet asks at addresses that this node once had, or that gossip tells of it,
// whether another process answers there in its name.
func (t *twins) meet(ctx context.Context, sightings []sighting) error {
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

// earlier reports whether gossip hears of a start of this node before this one.
func (t *twins) earlier() bool {
	starts := t.network.gossip.Starts(t.network.self.node)
	return slices.ContainsFunc(starts, func(p gossip.Peer) bool { return p.Alive && p.Epoch < t.network.self.epoch })
}

// rivals are the others that may be believed instead of the start at addr. A
// start at the address that the cluster knows has none that only gossip hears
// of: nobody has let those in. Otherwise an original and its copy that start in
// the same moment would refuse each other, and both stop.
func (t *twins) rivals(node string, epoch uint64, addr string) []sighting {
	if m := t.network.view().Member(node); m != nil && m.Addr == addr {
		return nil
	}
	return t.others(node, epoch, addr)
}

// others are the starts of a node other than the one of that epoch at addr, each
// address once.
func (t *twins) others(node string, epoch uint64, addr string) []sighting {
	var out []sighting
	add := func(e uint64, a string, alive bool) {
		if e != epoch && a != "" && a != addr && !slices.ContainsFunc(out, func(s sighting) bool { return s.addr == a }) {
			out = append(out, sighting{a, alive})
		}
	}

	// Those that gossip hears of now, then the one that the catalog knows.
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

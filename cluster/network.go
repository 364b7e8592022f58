package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gossip"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// meta is what a node reports of itself by gossip.
type meta struct {
	Cluster string `json:"c,omitempty"`
	Addr    string `json:"w"` // address for calls
	API     string `json:"a,omitempty"`
	Expect  int    `json:"x,omitempty"` // BootstrapExpect, while in no cluster
	Term    uint64 `json:"t,omitempty"` // of raft
	Former  string `json:"f,omitempty"` // clusters that this one replaced: see successor.go
	Load    Load   `json:"l"`
	Name    string `json:"n,omitempty"` // for display
}

// network knows where the other nodes are, and calls them. Its methods are safe for concurrent use.
type network struct {
	*env
	o    Options
	self *self
	view func() *catalog.View

	port       *wire.Port
	gossip     *gossip.Gossip
	lastGossip atomic.Pointer[gossiped]
	handlers   map[string]Handler
	streams    map[string]StreamHandler

	// These report the state of this node to others.
	load     atomic.Pointer[Load]
	applied  func() uint64 // index of the applied catalog
	disputed func() bool   // whether this node leads and refuses writes
	term     func() uint64 // of its raft
	keys     func() wire.Keys
}

// open opens the ports. They are served by run.
func (n *network) open(keys wire.Keys) (err error) {
	n.handlers, n.streams = map[string]Handler{}, map[string]StreamHandler{}
	n.port, err = wire.Listen(wire.Options{
		Listen: n.o.ClusterListen,
		Self:   wire.Peer{Cluster: n.self.cluster(), Node: n.self.node, Epoch: n.self.epoch},
		Keys:   keys,
		Admit:  n.admit, // its error goes to the peer before any handler sees a call
		Errors: append(slices.Clone(n.o.Errors), ownKinds...),
		Dial:   n.o.Dial,
		Log:    n.log.With("part", "wire"),
	})
	if err != nil {
		return err
	}

	n.gossip, err = gossip.New(gossip.Options{
		Listen:    n.o.GossipListen,
		Advertise: n.o.Advertise,
		Keys:      gossipKeys(keys),
		Node:      n.self.node,

		Epoch:  n.self.epoch,
		Join:   n.o.Join,
		Meta:   n.ownMeta(),
		Now:    n.o.Now,
		Reach:  n.o.Reach,
		Timing: n.timing,
		Log:    n.log.With("part", "gossip"),
	})
	return err
}

// run serves the ports until the context ends.
func (n *network) run(ctx context.Context) {
	var ports sync.WaitGroup
	for _, run := range []func(context.Context) error{n.port.Run, n.gossip.Run} {
		ports.Go(func() {
			if err := run(ctx); err != nil {
				n.fail(err)
			}
		})
	}
	ports.Wait()
}

// close closes ports that were never run.
func (n *network) close() {
	if n.port != nil {
		n.port.Close()
	}
	if n.gossip != nil {
		n.gossip.Close()
	}
}

// clusterAddr returns the advertised address for calls, with the actual port.
func (n *network) clusterAddr() string { return n.advertised(n.port.Addr()) }

// advertised replaces the host of an address by the advertised one.
func (n *network) advertised(addr string) string {
	if n.o.Advertise == "" {
		return addr
	}

	// A port in --advertise is ignored: each listener has its own.
	host := n.o.Advertise
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

// enterCluster makes this node call as a member of a cluster, and report that by gossip.
func (n *network) enterCluster(cluster string) error {
	if err := n.port.SetCluster(cluster); err != nil {
		return err
	}
	n.gossip.SetMeta(n.ownMeta())
	return nil
}

// setKeys replaces the keys of all connections.
func (n *network) setKeys(keys wire.Keys) error {
	if err := n.port.SetKeys(keys); err != nil {
		return err
	}
	return n.gossip.SetKeys(gossipKeys(keys))
}

// refreshGossip updates what gossip reports of this node, and tells gossip the known addresses of the
// members.
func (n *network) refreshGossip() {
	n.gossip.SetMeta(n.ownMeta())

	var addrs []string
	for m := range n.view().Members() {
		if m.State != catalog.MemberRemoved && m.ID != n.self.node && m.Gossip != "" {
			addrs = append(addrs, m.Gossip)
		}
	}
	n.gossip.Know(addrs)
}

// ownMeta encodes what gossip tells other nodes about this one.
func (n *network) ownMeta() []byte {
	m := meta{
		Cluster: n.self.cluster(),
		Addr:    n.clusterAddr(),
		API:     n.o.API,
		Load:    n.ownLoad(),
		Name:    n.o.Name,
		Former:  formerIDs(n.view()),
		Term:    n.term(),
	}

	// Expect matters only while there is no cluster.
	if m.Cluster == "" {
		m.Expect = n.o.BootstrapExpect
	}

	data, err := json.Marshal(m)

	// If it is too long, drop the name: addresses matter more.
	if len(data) > gossip.MaxMeta {
		m.Name = ""
		data, err = json.Marshal(m)
	}
	if err != nil || len(data) > gossip.MaxMeta {
		n.log.Error("cannot announce this node: its addresses are too long for gossip; use a shorter name in --advertise", "bytes", len(data))
		return nil
	}
	return data
}

// ownLoad returns the load that this node reports.
func (n *network) ownLoad() Load {
	var l Load
	if set := n.load.Load(); set != nil {
		l = *set
	}
	l.Applied, l.Disputed, l.Keys = n.applied(), n.disputed(), fingerprints(n.keys())
	return l
}

// peer is another node as known by gossip.
type peer struct {
	gossip.Peer
	meta
}

// gossiped is a snapshot of gossip.
type gossiped struct {
	changed <-chan struct{} // closed when gossip changes
	peers   []peer
}

// peers returns the other nodes known to gossip, alive or not. The caller must not change the
// result. It is cached until gossip changes, because searches ask for every shard whether its
// holders are alive.
func (n *network) peers() []peer {
	if h := n.lastGossip.Load(); h != nil {
		select {
		case <-h.changed:
		default:
			return h.peers
		}
	}

	// Two concurrent callers may both read the peers; either result may be stored.
	h := &gossiped{changed: n.gossip.Changed()} // call Changed before Peers, to miss nothing
	for _, g := range n.gossip.Peers() {
		p := peer{Peer: n.registeredStart(g)}
		if g.Node == n.self.node || json.Unmarshal(p.Meta, &p.meta) != nil {
			continue
		}
		h.peers = append(h.peers, p)
	}

	killSharedAddresses(h.peers, n.gossip.Addr(), n.memberNumber)
	n.lastGossip.Store(h)
	return h.peers
}

// clockLag returns how far this node's clock is behind the median of the reachable members' clocks. A
// difference below ClockSlack counts as 0, so that slow answers change nothing.
func (n *network) clockLag() time.Duration {
	offsets := []time.Duration{0} // of this node's own clock
	ahead := n.gossip.Ahead()
	for _, p := range n.peers() {
		if offset, measured := ahead[p.Node]; measured && p.Alive && p.Cluster == n.self.cluster() {
			offsets = append(offsets, offset)
		}
	}

	median := medianOf(offsets)
	if median.Abs() < ClockSlack {
		return 0
	}
	return median
}

// medianOf returns the median. With an even number it returns the middle value nearer to zero, which favours
// this node's own clock: with two nodes nobody knows which clock is right.
func medianOf(offs []time.Duration) time.Duration {
	slices.Sort(offs)
	low, high := offs[(len(offs)-1)/2], offs[len(offs)/2]
	if high.Abs() < low.Abs() {
		return high
	}
	return low
}

// memberNumber returns the member number of a node. A node that has not joined yet sorts last.
func (n *network) memberNumber(node string) uint32 {
	if m := n.view().Member(node); m != nil {
		return m.Number
	}
	return math.MaxUint32
}

// killSharedAddresses marks all nodes but one dead that share an address. The one that joined last stays alive,
// and none at this node's own address: two nodes cannot listen on one address. A machine that lost
// its disk returns as another node. For some seconds gossip then takes its answers for the old one,
// too, and the old one's vote must not be counted on.
func killSharedAddresses(peers []peer, own string, joined func(node string) uint32) {
	last := map[string]uint32{}
	for _, p := range peers {
		if p.Alive {
			last[p.Peer.Addr] = max(last[p.Peer.Addr], joined(p.Node))
		}
	}

	for i, p := range peers {
		if p.Peer.Addr == own || joined(p.Node) < last[p.Peer.Addr] {
			peers[i].Alive = false
		}
	}
}

// registeredStart returns the start of a node that the catalog names, if that is alive, and otherwise
// best. Another start may run on a copied data directory, and must not receive calls.
func (n *network) registeredStart(best gossip.Peer) gossip.Peer {
	m := n.view().Member(best.Node)
	if m == nil || m.Epoch == best.Epoch {
		return best
	}
	for _, p := range n.gossip.Starts(best.Node) {
		if p.Alive && p.Epoch == m.Epoch {
			return p
		}
	}
	return best
}

// findPeer returns what gossip knows of a member of this cluster; false if it knows none of that id.
func (n *network) findPeer(node string) (peer, bool) {
	for _, p := range n.peers() {
		if p.Node == node && p.Cluster == n.self.cluster() {
			return p, true
		}
	}
	return peer{}, false
}

// targetOf returns the address of a member: from gossip, which learns new addresses first, otherwise
// from the catalog.
func (n *network) targetOf(node string) (wire.Target, error) {
	if p, ok := n.findPeer(node); ok && p.meta.Addr != "" {
		return wire.Target{Node: node, Addr: p.meta.Addr}, nil
	}
	if m := n.view().Member(node); m != nil && m.Addr != "" {
		return wire.Target{Node: node, Addr: m.Addr}, nil
	}
	return wire.Target{}, fmt.Errorf("cluster: no address of node %s is known: %w", node, wire.ErrUnreachable)
}

// dialRaft opens a raft connection to a member.
func (n *network) dialRaft(node string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	t, err := n.targetOf(node)
	if err != nil {
		return nil, err
	}
	return n.port.DialRaft(ctx, t)
}

// alive reports whether a member is reachable, according to gossip.
func (n *network) alive(node string) bool {
	if node == n.self.node {
		return true
	}
	p, ok := n.findPeer(node)
	return ok && p.Alive
}

// refusal is the first part of a message that refuses a node for good.
const refusal = "this node is not let into the cluster: "

// ErrRefused is wrapped by an error of Run if the other nodes refuse this one for good: it was
// removed, or its data directory is a copy or an old image. A restart does not help.
var ErrRefused = errors.New("cluster: refused for good")

// refused is an error that matches ErrRefused.
type refused string

// Error returns the reason.
func (r refused) Error() string { return string(r) }

// Is matches ErrRefused.
func (r refused) Is(target error) bool { return target == ErrRefused }

// refusalIn returns the refusal in an error's text, without the text before it, or nil.
func refusalIn(err error) error {
	if _, why, found := strings.Cut(err.Error(), refusal); found {
		return refused("cluster: " + refusal + why)
	}
	return nil
}

// admit refuses removed nodes, and those whose data directory is old or a copy.
func (n *network) admit(from Peer, proto wire.Protocol) error {
	if proto == wire.Join {
		return nil
	}

	m := n.view().Member(from.Node)
	if m == nil {
		return nil // the caller was just admitted, and this catalog lacks it yet
	}

	if m.State == catalog.MemberRemoved {
		return fmt.Errorf(refusal + "it was removed; move its data directory away to let it join as a new one")
	}
	if refused := m.RefusesEpoch(from.Epoch); refused != nil {
		return fmt.Errorf(refusal+"%w", refused)
	}
	return nil
}

// Hello is a method that a node answers at once. Other calls never delay it.
const Hello = "hello"

// call implements [Cluster.Call].
//
// If the connection breaks, call tries once more on a new connection. All connections of a key end when
// the key is retired, so otherwise all holders of a shard could fail a search at the same moment.
func (n *network) call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if node == n.self.node {
		h := n.handlers[method]
		if h == nil {
			return nil, fmt.Errorf("cluster: no method %s", method)
		}
		return h(ctx, n.port.Self(), in)
	}

	t, err := n.targetOf(node)
	if err != nil {
		return nil, err
	}

	// Use a connection of its own, because a node at its limit of calls must still answer this.
	if method == Hello {
		return n.port.CallAside(ctx, t, method, in)
	}
	out, err := n.port.Call(ctx, t, method, in)
	if errors.Is(err, wire.ErrBroken) && ctx.Err() == nil {
		return n.port.CallAnew(ctx, t, method, in)
	}
	return out, err
}

// stream implements [Cluster.Stream].
func (n *network) stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	if node != n.self.node {
		t, err := n.targetOf(node)
		if err != nil {
			return nil, err
		}
		return n.port.Stream(ctx, t, method, in)
	}

	// A call to itself uses the same handler.
	h := n.streams[method]
	if h == nil {
		return nil, fmt.Errorf("cluster: no method %s", method)
	}
	return streamHere(ctx, func(ctx context.Context, w io.Writer) error { return h(ctx, n.port.Self(), in, w) }), nil
}

// streamHere returns a stream whose handler runs in this process.
func streamHere(ctx context.Context, run func(context.Context, io.Writer) error) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &ownStream{PipeReader: r, cancel: cancel}
	s.handler.Go(func() { w.CloseWithError(run(ctx, w)) })
	return s
}

// ownStream is the reader's end of a stream from this node to itself.
type ownStream struct {
	*io.PipeReader
	cancel  context.CancelFunc
	handler sync.WaitGroup
}

// Close stops the handler and waits for it.
func (s *ownStream) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	s.handler.Wait()
	return err
}

// handle sets the handler of a method. It must be called before run.
func (n *network) handle(method string, h Handler) {
	n.handlers[method] = h
	n.port.Handle(method, h)
}

// handleStream sets the handler of a streaming method. It must be called before run.
func (n *network) handleStream(method string, h StreamHandler) {
	n.streams[method] = h
	n.port.HandleStream(method, h)
}

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

// meta is what a node says of itself by gossip.
type meta struct {
	Cluster string `json:"c,omitempty"`
	Addr    string `json:"w"` // of its port for calls
	API     string `json:"a,omitempty"`
	Expect  int    `json:"x,omitempty"` // BootstrapExpect, while in no cluster
	Term    uint64 `json:"t,omitempty"` // of raft
	Former  string `json:"f,omitempty"` // clusters that this one was made of: see successor.go
	Load    Load   `json:"l"`
	Name    string `json:"n,omitempty"` // for people
}

// network is how this node reaches the others, and they it: where they are, and
// calls. Its methods are safe for concurrent use.
type network struct {
	*env
	o    Options
	self *self
	view func() *catalog.View

	port     *wire.Port
	gossip   *gossip.Gossip
	heard    atomic.Pointer[gossiped]
	handlers map[string]Handler
	streams  map[string]StreamHandler

	// What this node tells of itself.
	load     atomic.Pointer[Load]
	applied  func() uint64 // index of its catalog
	disputed func() bool   // it leads, and takes no writes
	term     func() uint64 // of its raft
}

// open opens the ports. Nothing is served before run.
func (n *network) open(keys wire.Keys) (err error) {
	n.handlers, n.streams = map[string]Handler{}, map[string]StreamHandler{}
	n.port, err = wire.Listen(wire.Options{
		Listen: n.o.ClusterListen,
		Self:   wire.Peer{Cluster: n.self.cluster(), Node: n.self.node, Epoch: n.self.epoch},
		Keys:   keys,
		Admit:  n.admit,

		// A peer that this node must not talk to is told so before any handler sees its call.
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

		// Hints of who else is there: gossip finds the others by these, the log of raft says who belongs.
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

// clusterAddr is the address for calls, with the real port.
func (n *network) clusterAddr() string { return n.advertised(n.port.Addr()) }

// advertised puts the host that others use into an address.
func (n *network) advertised(addr string) string {
	if n.o.Advertise == "" {
		return addr
	}

	// Given with a port it is the host alone: each port has its own number.
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

// enter lets this node call as a member of a cluster, and tells of it.
func (n *network) enter(cluster string) error {
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

// refresh brings what gossip tells of this node up to date, and lets gossip
// know where the members once were.
func (n *network) refresh() {
	n.gossip.SetMeta(n.ownMeta())

	var addrs []string
	for m := range n.view().Members() {
		if m.State != catalog.MemberRemoved && m.ID != n.self.node && m.Gossip != "" {
			addrs = append(addrs, m.Gossip)
		}
	}
	n.gossip.Know(addrs)
}

func (n *network) ownMeta() []byte {
	m := meta{
		Cluster: n.self.cluster(),
		Addr:    n.clusterAddr(),
		API:     n.o.API,
		Load:    n.ownLoad(),
		Name:    n.o.Name,
		Former:  formerOf(n.view()),
		Term:    n.term(),
	}

	// How many it waits for matters only until there is a cluster.
	if m.Cluster == "" {
		m.Expect = n.o.BootstrapExpect
	}

	data, err := json.Marshal(m)

	// Addresses are needed, a name is not.
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

func (n *network) ownLoad() Load {
	var l Load
	if set := n.load.Load(); set != nil {
		l = *set
	}
	l.Applied, l.Disputed = n.applied(), n.disputed()
	return l
}

// peer is another node as gossip has it.
type peer struct {
	gossip.Peer
	meta
}

// gossiped is what gossip knew at some moment.
type gossiped struct {
	changed <-chan struct{} // closed when it knows something else
	peers   []peer
}

// peers are the others that gossip knows of, alive or not. They are not to be
// changed. Searches ask for every shard whether its holders are alive, so what
// they tell is read once for each change.
func (n *network) peers() []peer {
	if h := n.heard.Load(); h != nil {
		select {
		case <-h.changed:
		default:
			return h.peers
		}
	}

	// Of two callers at once each reads for itself; the later list stays, and is as good.
	h := &gossiped{changed: n.gossip.Changed()} // before Peers, to miss nothing
	for _, g := range n.gossip.Peers() {
		p := peer{Peer: n.registered(g)}
		if g.Node == n.self.node || json.Unmarshal(p.Meta, &p.meta) != nil {
			continue
		}
		h.peers = append(h.peers, p)
	}

	newest(h.peers, n.gossip.Addr(), n.joined)
	n.heard.Store(h)
	return h.peers
}

// apart is how far the clock of this node is behind what most members say: the
// median of the clocks of those that can be reached. What differs by less than
// ClockSlack is as good, so that slow answers move nothing.
func (n *network) apart() time.Duration {
	offs := []time.Duration{0} // its own
	ahead := n.gossip.Ahead()
	for _, p := range n.peers() {
		if off, asked := ahead[p.Node]; asked && p.Alive && p.Cluster == n.self.cluster() {
			offs = append(offs, off)
		}
	}

	median := medianOf(offs)
	if median.Abs() < ClockSlack {
		return 0
	}
	return median
}

// medianOf is the one in the middle. Of two the one nearer to zero, which is this
// node's own clock: of two nodes nobody knows which one is right.
func medianOf(offs []time.Duration) time.Duration {
	slices.Sort(offs)
	low, high := offs[(len(offs)-1)/2], offs[len(offs)/2]
	if high.Abs() < low.Abs() {
		return high
	}
	return low
}

// joined is the number that the catalog gave to a node when it joined. One that
// has yet to join comes after all that have one.
func (n *network) joined(node string) uint32 {
	if m := n.view().Member(node); m != nil {
		return m.Number
	}
	return math.MaxUint32
}

// newest leaves alive, of the nodes that gossip has at one address, only the one
// that joined last, and none at this node's own: two cannot listen there.
// A machine that lost its disk comes back as another node, and for some
// seconds gossip takes what answers for the earlier one as well. Who believed
// that would count on the vote of a node that is gone.
func newest(peers []peer, own string, joined func(node string) uint32) {
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

// registered is, of the starts of a node that gossip hears, the one that the
// catalog has, while it is alive: another one can be that of a copied data
// directory, and calls must not go astray until that is found out.
func (n *network) registered(best gossip.Peer) gossip.Peer {
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

// lookup finds what gossip knows of a member of this cluster.
func (n *network) lookup(node string) (peer, bool) {
	for _, p := range n.peers() {
		if p.Node == node && p.Cluster == n.self.cluster() {
			return p, true
		}
	}
	return peer{}, false
}

// target is where a member is reached: by gossip, which hears of a new
// address first, else by the catalog.
func (n *network) target(node string) (wire.Target, error) {
	if p, ok := n.lookup(node); ok && p.meta.Addr != "" {
		return wire.Target{Node: node, Addr: p.meta.Addr}, nil
	}
	if m := n.view().Member(node); m != nil && m.Addr != "" {
		return wire.Target{Node: node, Addr: m.Addr}, nil
	}
	return wire.Target{}, fmt.Errorf("cluster: no address of node %s is known: %w", node, wire.ErrUnreachable)
}

// dialRaft opens a connection of raft to a member.
func (n *network) dialRaft(node string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	t, err := n.target(node)
	if err != nil {
		return nil, err
	}
	return n.port.DialRaft(ctx, t)
}

// alive reports whether a member can be reached, as far as gossip knows.
func (n *network) alive(node string) bool {
	if node == n.self.node {
		return true
	}
	p, ok := n.lookup(node)
	return ok && p.Alive
}

// refusal begins the text with which a node is kept out for good.
const refusal = "this node is not let into the cluster: "

// ErrRefused is what an error of Run is when the other nodes refuse this one for
// good: it was removed, or its data directory is a copy or an old image. To
// start it again as it is leads to the same.
var ErrRefused = errors.New("cluster: refused for good")

// refused is an error that is ErrRefused, in words of its own.
type refused string

// Error says why.
func (r refused) Error() string { return string(r) }

// Is makes it an ErrRefused.
func (r refused) Is(target error) bool { return target == ErrRefused }

// refusalIn is the refusal that an error brings, without the way that it took,
// or nil.
func refusalIn(err error) error {
	if _, why, found := strings.Cut(err.Error(), refusal); found {
		return refused("cluster: " + refusal + why)
	}
	return nil
}

// admit keeps out nodes that were removed, and those whose data directory is
// an old one or a copy.
func (n *network) admit(from Peer, proto wire.Protocol) error {
	if proto == wire.Join {
		return nil
	}

	m := n.view().Member(from.Node)
	if m == nil {
		return nil // it was let in a moment ago, or this node is behind
	}

	if m.State == catalog.MemberRemoved {
		return fmt.Errorf(refusal + "it was removed; move its data directory away to let it join as a new one")
	}
	if no := m.RefusesEpoch(from.Epoch); no != nil {
		return fmt.Errorf(refusal+"%w", no)
	}
	return nil
}

// Hello is a method that a node answers at once. Other calls never delay it.
const Hello = "hello"

// call asks a member; it is for what changes nothing there. A call to self is
// answered without the network. The deadline and the end of the context reach
// the handler.
//
// A call whose connection breaks is made once more, on a new one: every connection
// of a key ends when the key is no longer valid, and so all holders of a shard
// could fail one search at the same moment.
func (n *network) call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if node == n.self.node {
		h := n.handlers[method]
		if h == nil {
			return nil, fmt.Errorf("cluster: no method %s", method)
		}
		return h(ctx, n.port.Self(), in)
	}

	t, err := n.target(node)
	if err != nil {
		return nil, err
	}

	// A node with as many calls as it may have at a time is busy, not silent.
	if method == Hello {
		return n.port.CallAside(ctx, t, method, in)
	}
	out, err := n.port.Call(ctx, t, method, in)
	if errors.Is(err, wire.ErrBroken) && ctx.Err() == nil {
		return n.port.CallAnew(ctx, t, method, in)
	}
	return out, err
}

// stream is call with a long answer, on a connection of its own. The error
// of a broken stream comes from Read.
func (n *network) stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	if node != n.self.node {
		t, err := n.target(node)
		if err != nil {
			return nil, err
		}
		return n.port.Stream(ctx, t, method, in)
	}

	// To itself in this process, by the same handler as for the others.
	h := n.streams[method]
	if h == nil {
		return nil, fmt.Errorf("cluster: no method %s", method)
	}
	return streamHere(ctx, func(ctx context.Context, w io.Writer) error { return h(ctx, n.port.Self(), in, w) }), nil
}

// streamHere is a stream whose handler runs in this process.
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

// Close ends the handler and waits for it.
func (s *ownStream) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	s.handler.Wait()
	return err
}

// handle sets who answers calls of a method. It comes before run.
func (n *network) handle(method string, h Handler) {
	n.handlers[method] = h
	n.port.Handle(method, h)
}

// handleStream sets who answers streaming calls. It comes before run.
func (n *network) handleStream(method string, h StreamHandler) {
	n.streams[method] = h
	n.port.HandleStream(method, h)
}

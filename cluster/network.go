package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gossip"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// meta is what a node tells of itself by gossip.
type meta struct {
	Cluster string `json:"c,omitempty"`
	Addr    string `json:"w"` // of its port for calls
	API     string `json:"a,omitempty"`
	Expect  int    `json:"x,omitempty"` // BootstrapExpect, while in no cluster
	Load    Load   `json:"l"`
}

// openNetwork opens the ports. Nothing is served before Run.
func (c *Cluster) openNetwork() (err error) {
	c.port, err = wire.Listen(wire.Options{
		Listen: c.o.ClusterListen,
		Self:   wire.Peer{Cluster: c.id.ClusterID, Node: c.id.NodeID, Epoch: c.id.epoch()},
		Keys:   c.validKeys(),
		Admit:  c.admit,
		Errors: map[string]error{"no-leader": ErrNoLeader, "not-leader": errNotLeader, "closed": ErrClosed},
		Dial:   c.o.Dial,
		Log:    c.log.With("part", "wire"),
	})
	if err != nil {
		return err
	}
	c.gossip, err = gossip.New(gossip.Options{
		Listen:    c.o.GossipListen,
		Advertise: c.o.Advertise,
		Keys:      gossipKeys(c.validKeys()),
		Node:      c.id.NodeID,
		Epoch:     c.id.epoch(),
		Join:      c.o.Join,
		Meta:      c.ownMeta(),
		Reach:     c.o.Reach,
		Timing:    c.o.Timing,
		Log:       c.log.With("part", "gossip"),
	})
	if err != nil {
		return err
	}
	c.gossip.SetMeta(c.ownMeta())
	return nil
}

// ClusterAddr is the address for calls, with the real port.
func (c *Cluster) ClusterAddr() string { return c.advertised(c.port.Addr()) }

// GossipAddr is the address for gossip, with the real port.
func (c *Cluster) GossipAddr() string { return c.gossip.Addr() }

// advertised puts the host that others use into an address.
func (c *Cluster) advertised(addr string) string {
	if c.o.Advertise == "" {
		return addr
	}
	host := c.o.Advertise
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

func (c *Cluster) ownMeta() []byte {
	m := meta{Cluster: c.clusterID(), Addr: c.ClusterAddr(), API: c.o.API}
	if m.Cluster == "" {
		m.Expect = c.o.BootstrapExpect
	}
	m.Load = c.ownLoad()
	data, err := json.Marshal(m)
	if err != nil || len(data) > gossip.MaxMeta {
		c.log.Error("this node cannot tell others of itself: its addresses are too long", "bytes", len(data))
		return nil
	}
	return data
}

func (c *Cluster) ownLoad() Load {
	var l Load
	if set := c.load.Load(); set != nil {
		l = *set
	}
	l.Applied = c.machine.applied.Load()
	return l
}

// peer is another node as gossip has it.
type peer struct {
	gossip.Peer
	meta
}

// hearsay is what gossip knew at some moment.
type hearsay struct {
	changed <-chan struct{} // closed when it knows something else
	peers   []peer
}

// peers are the others that gossip knows of, alive or not. They are not to be
// changed. Searches ask for every shard whether its holders are alive, so what
// they tell is read once for each change.
func (c *Cluster) peers() []peer {
	if h := c.heard.Load(); h != nil {
		select {
		case <-h.changed:
		default:
			return h.peers
		}
	}
	h := &hearsay{changed: c.gossip.Changed()} // before Peers, to miss nothing
	for _, g := range c.gossip.Peers() {
		p := peer{Peer: g}
		if g.Node == c.id.NodeID || json.Unmarshal(g.Meta, &p.meta) != nil {
			continue
		}
		h.peers = append(h.peers, p)
	}
	c.heard.Store(h)
	return h.peers
}

// lookup finds what gossip knows of a member of this cluster.
func (c *Cluster) lookup(node string) (peer, bool) {
	for _, p := range c.peers() {
		if p.Node == node && p.Cluster == c.clusterID() {
			return p, true
		}
	}
	return peer{}, false
}

// target is where a member is reached: by gossip, which hears of a new
// address first, else by the catalog.
func (c *Cluster) target(node string) (wire.Target, error) {
	if p, ok := c.lookup(node); ok && p.meta.Addr != "" {
		return wire.Target{Node: node, Addr: p.meta.Addr}, nil
	}
	if m := c.View().Member(node); m != nil && m.Addr != "" {
		return wire.Target{Node: node, Addr: m.Addr}, nil
	}
	return wire.Target{}, fmt.Errorf("cluster: no address of node %s is known: %w", node, wire.ErrUnreachable)
}

// refusal begins the text with which a node is kept out for good.
const refusal = "this node is not let into the cluster: "

// refusalIn is the refusal that an error brings, without the way that it took,
// or nil.
func refusalIn(err error) error {
	if _, why, found := strings.Cut(err.Error(), refusal); found {
		return errors.New("cluster: " + refusal + why)
	}
	return nil
}

// admit keeps out nodes that were removed, and those whose data directory is
// an old one or a copy.
func (c *Cluster) admit(from Peer, proto wire.Protocol) error {
	if proto == wire.Join {
		return nil
	}
	m := c.View().Member(from.Node)
	if m == nil {
		return nil // it was let in a moment ago, or this node is behind
	}
	if m.State == catalog.MemberRemoved {
		return fmt.Errorf(refusal + "it was removed; empty its data directory to let it join as a new one")
	}
	if no := m.RefusesEpoch(from.Epoch); no != nil {
		return fmt.Errorf(refusal+"%w", no)
	}
	return nil
}

// Call asks a member; it is for what changes nothing there. A call to Self is
// answered without the network. The deadline and the end of the context reach
// the handler.
//
// A call whose connection breaks is made once more: every connection of a key
// ends when the key is no longer valid, and so all holders of a shard could
// fail one search at the same moment.
func (c *Cluster) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if node == c.id.NodeID {
		h := c.handlers[method]
		if h == nil {
			return nil, fmt.Errorf("cluster: no method %s", method)
		}
		return h(ctx, c.port.Self(), in)
	}
	t, err := c.target(node)
	if err != nil {
		return nil, err
	}
	out, err := c.port.Call(ctx, t, method, in)
	if errors.Is(err, wire.ErrBroken) && ctx.Err() == nil {
		return c.port.Call(ctx, t, method, in)
	}
	return out, err
}

// Stream is Call with a long answer, on a connection of its own. The error
// of a broken stream comes from Read.
func (c *Cluster) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	if node != c.id.NodeID {
		t, err := c.target(node)
		if err != nil {
			return nil, err
		}
		return c.port.Stream(ctx, t, method, in)
	}
	h := c.streams[method]
	if h == nil {
		return nil, fmt.Errorf("cluster: no method %s", method)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(h(ctx, c.port.Self(), in, w)) }()
	return r, nil
}

// Handle sets who answers calls of a method. Call it before Run.
func (c *Cluster) Handle(method string, h Handler) {
	c.handlers[method] = h
	c.port.Handle(method, h)
}

// HandleStream sets who answers streaming calls. Call it before Run.
func (c *Cluster) HandleStream(method string, h StreamHandler) {
	c.streams[method] = h
	c.port.HandleStream(method, h)
}

// SetLoad sets what gossip tells the others of this node. Applied is filled in.
func (c *Cluster) SetLoad(l Load) { c.load.Store(&l) }

// tellPause is how often what gossip tells of this node is brought up to date.
const tellPause = 2 * time.Second

// tell keeps what gossip says of this node up to date, and gossip informed
// of where members once were.
func (c *Cluster) tell(ctx context.Context) {
	for {
		c.gossip.SetMeta(c.ownMeta())
		var addrs []string
		for m := range c.View().Members() {
			if m.State != catalog.MemberRemoved && m.ID != c.id.NodeID && m.Gossip != "" {
				addrs = append(addrs, m.Gossip)
			}
		}
		c.gossip.Know(addrs)
		if !c.pause(ctx, c.scaled(tellPause)) {
			return
		}
	}
}

// transport is raft's, over the port for calls. Servers are addressed by
// their ids, so that a new address is no change of raft's membership.
type transport struct {
	*raft.NetworkTransport
	c    *Cluster
	rpcs chan raft.RPC
}

// AppendEntries implements raft.Transport. After failures raft waits longer
// and longer before it sends entries again, in the end ten seconds, also to a
// node that has come back meanwhile: that one would be neither ready nor fit to
// lead for as long. So a call to a node that is not there waits until the node
// is and is made again, and raft counts no failure.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := t.NetworkTransport.AppendEntries(id, addr, args, resp)
	if err != nil && !heartbeat(args) && errors.Is(err, wire.ErrUnreachable) {
		if t.c.absence(string(id)).outlast() {
			return t.NetworkTransport.AppendEntries(id, addr, args, resp)
		}
	}
	return err
}

// heartbeat tells a call that only says who leads from one about the log.
func heartbeat(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0
}

// absence is a node that could not be reached.
type absence struct {
	alive func() bool // gossip hears of it
	wait  func() bool // for a moment; false when there is nothing to wait for
	reach func() bool // tries to connect, where gossip may be wrong
}

// reachEvery is how many waits there are between two tries to connect.
const reachEvery = 100

// outlast waits, and reports whether the node came back meanwhile.
func (a absence) outlast() bool {
	if a.alive() {
		return false // what failed has another reason, or gossip has not noticed
	}
	for n := 1; a.wait(); n++ {
		if a.alive() || n%reachEvery == 0 && a.reach() {
			return true
		}
	}
	return false
}

// absencePause is one wait, at Timing 1.
const absencePause = 50 * time.Millisecond

func (c *Cluster) absence(node string) absence {
	return absence{
		alive: func() bool { return c.Alive(node) },
		wait: func() bool {
			m := c.View().Member(node)
			gone := m != nil && m.State == catalog.MemberRemoved
			return !gone && c.raft.State() == raft.Leader && c.pause(context.Background(), c.scaled(absencePause))
		},
		reach: func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), c.scaled(formTime))
			defer cancel()
			t, err := c.target(node)
			if err != nil {
				return false
			}
			conn, err := c.port.DialRaft(ctx, t)
			if err != nil {
				return false
			}
			conn.Close()
			return true
		},
	}
}

func (c *Cluster) newTransport() *transport {
	t := &transport{
		c: c,
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  raftStream{c.port.Raft(), c},
			MaxPool: transportPool,
			// No pipelining: after a refused append it can wait for ever.
			MaxRPCsInFlight:         1,
			Timeout:                 c.scaled(transportTimeout),
			Logger:                  newRaftLog(c.log),
			MsgpackUseNewTimeFormat: true,
		}),
		rpcs: make(chan raft.RPC),
	}
	go func() {
		for {
			select {
			case rpc := <-t.NetworkTransport.Consumer():
				select {
				case t.rpcs <- rpc:
				case <-c.closed:
					return
				}
			case <-c.closed:
				return
			}
		}
	}()
	return t
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// electSelf makes raft ask for votes at once.
func (t *transport) electSelf(id string) {
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
	done := make(chan raft.RPCResponse, 1)
	t.rpcs <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header}, RespChan: done}
	<-done
}

// raftStream implements raft.StreamLayer.
type raftStream struct {
	net.Listener
	c *Cluster
}

// nodeAddr is a node id where raft wants an address.
type nodeAddr string

// Network implements net.Addr.
func (nodeAddr) Network() string { return "shoal" }

// String implements net.Addr.
func (a nodeAddr) String() string { return string(a) }

// Addr implements net.Listener.
func (s raftStream) Addr() net.Addr { return nodeAddr(s.c.id.NodeID) }

// Dial implements raft.StreamLayer.
func (s raftStream) Dial(id raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	t, err := s.c.target(string(id))
	if err != nil {
		return nil, err
	}
	return s.c.port.DialRaft(ctx, t)
}

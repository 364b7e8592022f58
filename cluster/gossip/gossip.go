// Package gossip says which nodes can be reached, at what addresses, and how
// loaded they are. All of it is hints: whoever has the cluster key can write
// them, they may be old, and two nodes may see different ones for a while. Nothing
// that must be right is decided by them.
//
// It wraps memberlist and cures what is known of it: messages are always
// encrypted; a name holds the count of the node's starts, so that a restarted
// node is not taken for its dead self; and nodes that were lost are looked for
// again all the time, so that two halves find each other after any partition.
package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/shoalsearch/shoal/clock"
)

// MaxMeta is how many bytes a node can tell of itself.
const MaxMeta = 400

// maxDead is how many lost nodes are remembered.
const maxDead = 1024

// Options say how a node takes part. Zero values are the defaults named.
type Options struct {
	Listen    string   // host:port, for UDP and TCP; required
	Advertise string   // host or host:port that the others use; default that of Listen; required when that is a wildcard
	Keys      [][]byte // of 32 bytes; the first encrypts, all decrypt; required
	Node      string   // id; required
	Epoch     uint64   // counts the starts of the node
	Meta      []byte   // what the node tells of itself; at most MaxMeta bytes
	Join      []string // host:port, host (with the port of Listen) or _service._proto.name, looked up each time

	Now    func() time.Time                // the clock that others compare with theirs; default that of the machine
	Reach  func(network, addr string) bool // false for an address that a packet (udp) does not get to, or with which no connection (tcp) is made; for tests; default: all can
	Timing float64                         // multiplies all intervals; default 1
	Log    *slog.Logger                    // default: discards
}

// Peer is another node, or this one.
type Peer struct {
	Node  string
	Epoch uint64 // of the start that counts
	Addr  string // host:port of its gossip
	Meta  []byte // not to be changed
	Alive bool

	since time.Time // when Alive changed
	there time.Time // what its clock said last; zero before the first answer
	heard time.Time // and when that was, by the clock of this machine, which nobody sets
}

// start is one start of a node. Several of a node can be known at once: while
// the others have not yet noticed that the earlier one ended, and when a copy
// of the data directory runs beside the node itself.
type start struct {
	node  string
	epoch uint64
}

// counts reports whether p, and not q, another start of the same node, says where
// the node is: the one that is alive, else the newer one. A copy of the data
// directory may have a newer epoch; once the copy has ended it must not hide the
// node itself.
func (p Peer) counts(q Peer) bool {
	if p.Alive != q.Alive {
		return p.Alive
	}
	return p.Epoch > q.Epoch
}

// Gossip is this node's part. All methods are safe for concurrent use.
type Gossip struct {
	o      Options
	list   *memberlist.Memberlist
	keys   *memberlist.Keyring
	addr   string
	wakeup chan struct{} // meta is to be told

	unfound map[string]bool // names that could not be looked up last time; of search alone

	mu      sync.Mutex // guards the fields below
	meta    []byte
	peers   map[start]Peer
	known   []string      // more addresses to look for nodes at
	changed chan struct{} // closed at the next change
}

// New starts to listen; the node is alone until Run looks for others. After
// New either Run or Close must be called.
func New(o Options) (*Gossip, error) {
	if o.Timing <= 0 {
		o.Timing = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}

	g := &Gossip{
		o:       o,
		wakeup:  make(chan struct{}, 1),
		meta:    slices.Clone(o.Meta),
		unfound: map[string]bool{},
		peers:   make(map[start]Peer),
		changed: make(chan struct{}),
	}
	var err error
	if g.keys, err = memberlist.NewKeyring(o.Keys, o.Keys[0]); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}

	// From Create on the library closes the transport.
	raw, port, err := listen(o)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	t := newTransport(raw, o.Reach)

	c, err := g.config(port)
	if err == nil {
		c.Transport = t
		g.list, err = memberlist.Create(c)
	}
	if err != nil {
		t.Shutdown()
		return nil, fmt.Errorf("gossip: %w", err)
	}

	// With port 0 it is known only now.
	g.addr = g.list.LocalNode().Address()
	return g, nil
}

func (o *Options) check() error {
	switch {
	case o.Node == "" || strings.ContainsAny(o.Node, " /") || len(o.Node) > 100:
		return fmt.Errorf("node id %q is empty, too long or has blanks", o.Node)
	case len(o.Keys) == 0:
		return errors.New("no key: gossip is always encrypted")
	case len(o.Meta) > MaxMeta:
		return errMeta(o.Meta)
	}
	return nil
}

func errMeta(meta []byte) error {
	return fmt.Errorf("%d bytes of meta data, at most %d are told", len(meta), MaxMeta)
}

// config sets memberlist up. It differs from the library's defaults for a local
// network in that a node is suspected for longer before it counts as lost, hears
// of its own loss for longer, and may come back under its name from another
// address.
func (g *Gossip) config(port int) (*memberlist.Config, error) {
	ip, advertised, err := advertise(g.o, port)
	if err != nil {
		return nil, err
	}
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * g.o.Timing) }

	c := memberlist.DefaultLANConfig()
	c.Name = name(g.o.Node, g.o.Epoch)
	c.BindPort = port
	c.AdvertiseAddr, c.AdvertisePort = ip, advertised

	c.Keyring = g.keys
	c.EnableCompression = false // a few hundred bytes are not worth what a forged message could unpack to

	// A busy node must not count as lost for a slow second: that moves data and leads.
	c.SuspicionMult = 5
	c.ProbeInterval, c.ProbeTimeout = scale(time.Second), scale(500*time.Millisecond)
	c.GossipInterval = scale(200 * time.Millisecond)
	c.PushPullInterval = scale(30 * time.Second)
	c.GossipToTheDeadTime = scale(60 * time.Second)
	c.DeadNodeReclaimTime = scale(30 * time.Second)
	c.TCPTimeout = max(scale(10*time.Second), time.Second)

	// All that memberlist tells comes to one place.
	d := &delegate{g}
	c.Delegate, c.Events, c.Alive, c.Conflict, c.Ping = d, d, d, d, d
	c.Logger = logger(g.o.Log)
	return c, nil
}

// name is the name of a start of a node in memberlist: the id and the epoch in
// base 36, as 3f9a-1c.
func name(node string, epoch uint64) string {
	return node + "-" + strconv.FormatUint(epoch, 36)
}

func parseName(s string) (node string, epoch uint64, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return "", 0, false
	}
	epoch, err := strconv.ParseUint(s[i+1:], 36, 64)
	return s[:i], epoch, err == nil
}

// advertise returns the address at which the others find this node.
func advertise(o Options, port int) (ip string, advertised int, err error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", 0, err
	}

	// A port of its own is for a node behind a translation of addresses.
	advertised = port
	if o.Advertise != "" {
		host = o.Advertise
		if h, p, err := net.SplitHostPort(o.Advertise); err == nil {
			if advertised, err = strconv.Atoi(p); err != nil {
				return "", 0, fmt.Errorf("advertise %s: port %q is no number", o.Advertise, p)
			}
			host = h
		}
	}

	// The library wants an address. A name is looked up once, so a node whose address
	// changes has to be started again.
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return "", 0, fmt.Errorf("advertise %s: %w", host, err)
		}
		addr = found[0]
	}

	if addr.IsUnspecified() {
		return "", 0, fmt.Errorf("the address %s is a wildcard, which others cannot reach; say with advertise under which they can", addr)
	}
	return addr.Unmap().String(), advertised, nil
}

// Addr is the address at which the others find this node.
func (g *Gossip) Addr() string { return g.addr }

// SetMeta sets what the node tells of itself. Others learn it within seconds;
// of many changes in a short time they may learn only the last.
func (g *Gossip) SetMeta(meta []byte) error {
	if len(meta) > MaxMeta {
		return errMeta(meta)
	}

	g.mu.Lock()
	same := slices.Equal(g.meta, meta)
	g.meta = slices.Clone(meta)
	g.mu.Unlock()

	// One wakeup is enough, however many changes: what is told is the newest.
	if !same {
		select {
		case g.wakeup <- struct{}{}:
		default:
		}
	}
	return nil
}

// SetKeys replaces the keys; the first one encrypts from now on.
func (g *Gossip) SetKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("gossip: no key: gossip is always encrypted")
	}

	// Added first and removed last, so that at each time some key is common.
	for _, k := range keys {
		if err := g.keys.AddKey(k); err != nil {
			return fmt.Errorf("gossip: %w", err)
		}
	}
	if err := g.keys.UseKey(keys[0]); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}

	for _, old := range g.keys.GetKeys() {
		if slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == string(old) }) {
			continue
		}
		if err := g.keys.RemoveKey(old); err != nil {
			return fmt.Errorf("gossip: %w", err)
		}
	}
	return nil
}

// Know adds addresses (host:port) at which nodes may be found, as those of
// the members of the cluster. It replaces those of the last call.
func (g *Gossip) Know(addrs []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = slices.Clone(addrs)
}

// Peers returns all nodes that were heard of, this one included, by id. Of a
// node that was started again only the newest start that is alive counts, or
// the newest when none is.
func (g *Gossip) Peers() []Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	best := g.best()
	return slices.SortedFunc(maps.Values(best), func(a, b Peer) int { return strings.Compare(a.Node, b.Node) })
}

// Peer returns one node, if it was heard of.
func (g *Gossip) Peer(node string) (Peer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.best()[node]
	return p, ok
}

// Ahead is how far the clocks of the other nodes that are alive are ahead of this
// node's, to the half of a second; negative for one that is behind. A node that has
// not answered yet is not in it.
func (g *Gossip) Ahead() map[string]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, now := map[string]time.Duration{}, g.o.Now()
	for node, p := range g.best() {
		// From the last answer on both clocks have gone on; only this node's own may have been set.
		if p.Alive && !p.there.IsZero() {
			out[node] = p.there.Add(clock.Since(p.heard)).Sub(now)
		}
	}
	return out
}

// Starts are all starts of a node that are known of, the newest first. More
// than one that is alive can mean that the data directory was copied.
func (g *Gossip) Starts(node string) []Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Peer
	for s, p := range g.peers {
		if s.node == node {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Peer) int { return cmp.Compare(b.Epoch, a.Epoch) })
	return out
}

// best is the start that counts of each node. The caller holds mu.
func (g *Gossip) best() map[string]Peer {
	out := make(map[string]Peer, len(g.peers))
	for _, p := range g.peers {
		if q, ok := out[p.Node]; !ok || p.counts(q) {
			out[p.Node] = p
		}
	}
	return out
}

// Changed returns a channel that is closed at the next change of Peers. Call
// it before Peers to miss nothing.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Health is 0 when this node's own messages arrive in time, and more, up to
// 7, the slower it seems to be itself.
func (g *Gossip) Health() int { return g.list.GetHealthScore() }

// note records what was heard of a start of a node, and drops its starts that
// have ended and do not count.
func (g *Gossip) note(n *memberlist.Node, alive bool) {
	// What has another name is refused by NotifyAlive; this is what was heard before.
	node, epoch, ok := parseName(n.Name)
	if !ok {
		return
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	s := start{node, epoch}
	old, known := g.peers[s]
	p := Peer{Node: node, Epoch: epoch, Addr: n.Address(), Meta: slices.Clone(n.Meta), Alive: alive, since: old.since, there: old.there, heard: old.heard}
	if !known || old.Alive != alive {
		p.since = clock.Now()
	}
	g.peers[s] = p

	// A start that has ended hides nobody: only the one that counts is of use, dead or alive.
	counts := g.best()[node]
	maps.DeleteFunc(g.peers, func(s start, p Peer) bool {
		return s.node == node && !p.Alive && s.epoch != counts.Epoch
	})
	g.forget()

	// Whoever waits looks at the new list.
	close(g.changed)
	g.changed = make(chan struct{})
}

// forget keeps the lost nodes within maxDead: it drops the one that is lost for
// longest. The caller holds mu.
func (g *Gossip) forget() {
	// Lost nodes are kept to be looked for; their number is bounded, for anybody with the
	// key can tell of more.
	dead := 0
	var oldest Peer
	for _, p := range g.peers {
		if !p.Alive {
			if dead == 0 || p.since.Before(oldest.since) {
				oldest = p
			}
			dead++
		}
	}

	if dead > maxDead {
		delete(g.peers, start{oldest.Node, oldest.Epoch})
	}
}

// Close ends a Gossip that was never run.
func (g *Gossip) Close() error { return g.list.Shutdown() }

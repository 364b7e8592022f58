// Package gossip tells which nodes are reachable, at what addresses, and how loaded they are. All
// of it is only hints: every node with the cluster key can write them, they may be old, and two
// nodes may see different ones for a while. So no decision that must be right depends on them.
//
// It wraps memberlist and works around its known problems. Messages are always encrypted. A name
// contains the number of the node's start, so that a restarted node is not taken for its dead self.
// Lost nodes are searched all the time, so that two halves find each other after any partition.
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

// MaxMeta is the maximal number of bytes in Options.Meta.
const MaxMeta = 400

// maxDead is the maximal number of remembered lost nodes.
const maxDead = 1024

// Options configure a node. A zero value means the default in the field's comment.
type Options struct {
	Listen    string   // host:port, for UDP and TCP; required
	Advertise string   // host or host:port for other nodes; default: that of Listen; required if that is a wildcard
	Keys      [][]byte // of 32 bytes; the first encrypts, all decrypt; required
	Node      string   // id; required
	Epoch     uint64   // number of the node's start
	Meta      []byte   // what the node reports about itself; at most MaxMeta bytes
	Join      []string // host:port, host (with the port of Listen) or _service._proto.name; looked up each time

	Now    func() time.Time                // clock that others compare with theirs; default: the machine's
	Reach  func(network, addr string) bool // for tests: whether a packet (udp) or a connection (tcp) reaches an address; default: always true
	Timing float64                         // multiplies all intervals; default 1
	Log    *slog.Logger                    // default: discards
}

// Peer is a node, possibly this one.
type Peer struct {
	Node  string
	Epoch uint64 // the start of the node that counts
	Addr  string // host:port of its gossip
	Meta  []byte // read-only
	Alive bool
	Since time.Time // when Alive changed

	remoteTime time.Time // what its clock last showed; zero before the first answer
	heard      time.Time // when that answer came, by the monotonic clock of this machine
}

// start identifies one start of a node. Several starts of a node may be known at once: before the
// end of the earlier one is noticed, or while a copied data directory is in use.
type start struct {
	node  string
	epoch uint64
}

// countsMore reports whether p describes the node better than q, another start of it: a live start
// wins, then the newer one. A process on a copied data directory may have a newer epoch. After it has
// ended, the original, which is alive, wins.
func (p Peer) countsMore(q Peer) bool {
	if p.Alive != q.Alive {
		return p.Alive
	}
	return p.Epoch > q.Epoch
}

// Gossip exchanges news with the other nodes: who is alive, and what each reports of itself. Its
// methods are safe for concurrent use.
type Gossip struct {
	o      Options
	list   *memberlist.Memberlist
	keys   *memberlist.Keyring
	addr   string
	wakeup chan struct{} // signals that meta has changed

	unfound map[string]bool // names that could not be looked up; used only by search

	mu      sync.Mutex // guards the fields below
	meta    []byte
	peers   map[start]Peer
	known   []string      // further addresses to search for nodes
	changed chan struct{} // closed at the next change
}

// New opens the port. The node stays alone until Run searches for others. The caller must call
// either Run or Close.
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

	// After Create, the library closes the transport.
	raw, port, err := listenTCPAndUDP(o)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	t := newTransport(raw, o.Reach)

	c, err := g.listConfig(port)
	if err == nil {
		c.Transport = t
		g.list, err = memberlist.Create(c)
	}
	if err != nil {
		t.Shutdown()
		return nil, fmt.Errorf("gossip: %w", err)
	}

	// With port 0, the address is only known now.
	g.addr = g.list.LocalNode().Address()
	return g, nil
}

// check returns an error if a required option is missing or malformed.
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

// listConfig returns the settings of memberlist. They differ from its defaults for local networks: a
// node is suspected for longer before it counts as lost, hears of its own loss for longer, and may
// return under its name from another address.
func (g *Gossip) listConfig(port int) (*memberlist.Config, error) {
	ip, advertised, err := advertisedAddress(g.o, port)
	if err != nil {
		return nil, err
	}
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * g.o.Timing) }

	c := memberlist.DefaultLANConfig()
	c.Name = startName(g.o.Node, g.o.Epoch)
	c.BindPort = port
	c.AdvertiseAddr, c.AdvertisePort = ip, advertised

	c.Keyring = g.keys
	c.EnableCompression = false // a few hundred bytes gain little, and a forged message could decompress to much

	// A busy node must not count as lost for one slow second: that would move data and leadership.
	c.SuspicionMult = 5
	c.ProbeInterval, c.ProbeTimeout = scale(time.Second), scale(500*time.Millisecond)
	c.GossipInterval = scale(200 * time.Millisecond)
	c.PushPullInterval = scale(30 * time.Second)
	c.GossipToTheDeadTime = scale(60 * time.Second)
	c.DeadNodeReclaimTime = scale(30 * time.Second)
	c.TCPTimeout = max(scale(10*time.Second), time.Second)

	// One delegate receives all callbacks.
	d := &delegate{g}
	c.Delegate, c.Events, c.Alive, c.Conflict, c.Ping = d, d, d, d, d
	c.Logger = newLogger(g.o.Log)
	return c, nil
}

// startName returns memberlist's name for a start of a node: the id and the epoch in base 36, as
// 3f9a-1c.
func startName(node string, epoch uint64) string {
	return node + "-" + strconv.FormatUint(epoch, 36)
}

// parseName parses a startName. ok is false for any other text.
func parseName(s string) (node string, epoch uint64, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return "", 0, false
	}
	epoch, err := strconv.ParseUint(s[i+1:], 36, 64)
	return s[:i], epoch, err == nil
}

// advertisedAddress returns the address at which other nodes find this one.
func advertisedAddress(o Options, port int) (ip string, advertised int, err error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", 0, err
	}

	// Behind a NAT, the advertised port may differ.
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

	// The library needs an IP address. A name is looked up only here, so a node whose address
	// changes must be restarted.
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

// Addr returns the address at which other nodes find this one.
func (g *Gossip) Addr() string { return g.addr }

// SetMeta sets what the node reports about itself. Others learn it within seconds; of several quick
// changes, perhaps only the last one.
func (g *Gossip) SetMeta(meta []byte) error {
	if len(meta) > MaxMeta {
		return errMeta(meta)
	}

	g.mu.Lock()
	same := slices.Equal(g.meta, meta)
	g.meta = slices.Clone(meta)
	g.mu.Unlock()

	// One pending signal is enough: spreadMeta reads the newest value.
	if !same {
		select {
		case g.wakeup <- struct{}{}:
		default:
		}
	}
	return nil
}

// SetKeys replaces the keys. The first one encrypts.
func (g *Gossip) SetKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("gossip: no key: gossip is always encrypted")
	}

	// Add new keys first and remove old ones last, so that there is always a common key.
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

// Know sets further addresses (host:port) at which to search for nodes, as those of members. It
// replaces those of the previous call.
func (g *Gossip) Know(addrs []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = slices.Clone(addrs)
}

// Peers returns all known nodes by id, including this one. For a node with several starts it
// returns the newest live one, or the newest if none is alive.
func (g *Gossip) Peers() []Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	best := g.bestStarts()
	return slices.SortedFunc(maps.Values(best), func(a, b Peer) int { return strings.Compare(a.Node, b.Node) })
}

// Peer returns a node, if it is known.
func (g *Gossip) Peer(node string) (Peer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.bestStarts()[node]
	return p, ok
}

// Ahead returns how far the clocks of other live nodes are ahead of this node's, to half a second;
// negative for a clock that is behind. It lacks nodes that have not answered yet.
func (g *Gossip) Ahead() map[string]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, now := map[string]time.Duration{}, g.o.Now()
	for node, p := range g.bestStarts() {
		// Both clocks have advanced since the answer, so add that time.
		if p.Alive && !p.remoteTime.IsZero() {
			out[node] = p.remoteTime.Add(clock.Since(p.heard)).Sub(now)
		}
	}
	return out
}

// Starts returns all known starts of a node, newest first. More than one live start can mean that
// the data directory was copied.
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

// bestStarts returns the start that counts of each node. The caller holds mu.
func (g *Gossip) bestStarts() map[string]Peer {
	out := make(map[string]Peer, len(g.peers))
	for _, p := range g.peers {
		if q, ok := out[p.Node]; !ok || p.countsMore(q) {
			out[p.Node] = p
		}
	}
	return out
}

// Changed returns a channel that is closed at the next change of Peers. To miss nothing, call it
// before Peers.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Health returns 0 if this node's own messages arrive in time, and up to 7 the slower it seems to
// be.
func (g *Gossip) Health() int { return g.list.GetHealthScore() }

// recordStart records news about a start of a node, and drops starts of it that ended and do not
// count.
func (g *Gossip) recordStart(n *memberlist.Node, alive bool) {
	// NotifyAlive refuses other names, but memberlist may report them anyway.
	node, epoch, ok := parseName(n.Name)
	if !ok {
		return
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	s := start{node, epoch}
	old, known := g.peers[s]
	p := Peer{Node: node, Epoch: epoch, Addr: n.Address(), Meta: slices.Clone(n.Meta), Alive: alive, Since: old.Since, remoteTime: old.remoteTime, heard: old.heard}
	if !known || old.Alive != alive {
		p.Since = clock.Now()
	}
	g.peers[s] = p

	// Keep only the start that counts, and live ones.
	counts := g.bestStarts()[node]
	maps.DeleteFunc(g.peers, func(s start, p Peer) bool {
		return s.node == node && !p.Alive && s.epoch != counts.Epoch
	})
	g.forgetEnded()

	// Wake up all who wait for a change.
	close(g.changed)
	g.changed = make(chan struct{})
}

// forgetEnded limits the lost nodes to maxDead: it drops the node that is lost for longest. The caller
// holds mu.
func (g *Gossip) forgetEnded() {
	// Anybody with the key can make up nodes, so their number must be limited.
	dead := 0
	var oldest Peer
	for _, p := range g.peers {
		if !p.Alive {
			if dead == 0 || p.Since.Before(oldest.Since) {
				oldest = p
			}
			dead++
		}
	}

	if dead > maxDead {
		delete(g.peers, start{oldest.Node, oldest.Epoch})
	}
}

// Close closes a Gossip that was never run.
func (g *Gossip) Close() error { return g.list.Shutdown() }

package nodetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node"
)

// Fleet is a cluster of nodes in one process, with links that a test can cut. Each node has its
// own loopback address, so that its ports are free after a restart.
type Fleet struct {
	Nodes  []*Node
	Key    string // key file's text for nodes added from now on
	Expect int    // their BootstrapExpect

	t       testing.TB
	dir     string
	cfg     Config
	network *network
	subnet  string // first three numbers of the addresses
	timing  float64
}

// NewFleet makes a fleet without nodes. Its nodes form clusters of expect, and share a
// configuration. They stop when the test ends.
func NewFleet(t testing.TB, expect int, cfg Config) *Fleet {
	t.Helper()
	f := &Fleet{Key: wire.NewKey().Text(), Expect: expect, t: t, dir: t.TempDir(), cfg: cfg, network: newNetwork(), subnet: subnet(), timing: timeFactor()}
	t.Cleanup(f.Stop)
	return f
}

// StartFleet starts n nodes as one cluster with the same configuration. They stop when the test
// ends.
func StartFleet(t testing.TB, n int, cfg Config) *Fleet {
	t.Helper()
	f := NewFleet(t, n, cfg)
	for range n {
		f.Add().Launch()
	}
	for _, m := range f.Nodes {
		m.WaitReady()
	}
	return f
}

// Add adds a node without starting it. When it starts, it joins through all nodes that have an
// address by then.
func (f *Fleet) Add() *Node {
	f.t.Helper()
	i := len(f.Nodes)
	name := fmt.Sprintf("n%d", i+1)

	n := &Node{t: f.t, cfg: f.cfg, Dir: filepath.Join(f.dir, name), File: filepath.Join(f.dir, name+".json")}

	// Write it here, because the node's options name its path.
	if n.cfg.File == "" {
		n.cfg.File = "{}"
	}

	// Each node has its own key file, because keys are rotated one node after the other.
	n.KeyFile = filepath.Join(f.dir, name+".key")
	n.WriteKey(f.Key)

	// Read Expect now, because it may change for later nodes.
	host, expect := fmt.Sprintf("%s.%d", f.subnet, i+1), f.Expect

	// Edit runs at each start, so that a restarted node sees the nodes that exist by then.
	n.cfg.Edit = func(o *node.Options) {
		o.ClusterKeyFile, o.BootstrapExpect = n.KeyFile, expect
		o.Timing = f.timing // the same for all nodes

		o.Dial, o.Reach = f.network.dial(i), f.network.reach(i)

		// The system chooses the ports at the first start. Later starts keep them, because the
		// other nodes know them.
		o.ClusterListen, o.GossipListen = host+":0", host+":0"
		if n.addr != "" {
			o.ClusterListen, o.GossipListen = n.addr, n.gossip
		}

		// Joining itself would be no error, but useless.
		for _, other := range f.Nodes {
			if other != n && other.gossip != "" {
				o.Join = append(o.Join, other.gossip)
			}
		}

		// The test's own Edit comes last, so that it can override anything.
		if f.cfg.Edit != nil {
			f.cfg.Edit(o)
		}
	}

	// The network learns the ports between New and Run, before any connection.
	n.opened = func() {
		n.addr, n.gossip = n.ClusterAddr(), n.GossipAddr()
		f.network.setOwner(n.addr, i)
		f.network.setOwner(n.gossip, i)
	}

	n.Configure(n.cfg.File)
	f.Nodes = append(f.Nodes, n)
	return n
}

// WriteKey replaces the key file of a fleet's node.
func (n *Node) WriteKey(text string) {
	n.t.Helper()
	n.replace(n.KeyFile, text+"\n")
}

// Stop stops all nodes.
func (f *Fleet) Stop() {
	f.Heal()

	// Stop them at once: the last ones would otherwise look for a majority that is gone.
	var wg sync.WaitGroup
	for _, n := range f.Nodes {
		wg.Go(n.Stop)
	}
	wg.Wait()
}

// Crash ends a node without a message to the others: it hands over no leadership, returns no job
// and says no goodbye. Its files are closed cleanly, since other tests kill processes. Its links
// are restored afterwards.
//
// The first crash of a fleet of three or more waits until three nodes vote: a new cluster has one
// voter, and would not survive losing it.
func (f *Fleet) Crash(a int) {
	Eventually(Patience/9, f.mayLoseNode)

	// Cut it off first, so that its last messages reach nobody.
	f.Isolate(a)
	f.Nodes[a].Stop()
	f.network.set(func(l *link) { *l = link{} }, f.linksOf(a)...)
}

// mayLoseNode reports whether three live nodes vote. It returns true if the fleet is smaller, or if
// a node was stopped before.
func (f *Fleet) mayLoseNode() bool {
	stopped := func(n *Node) bool { return n.cancel == nil }
	if len(f.Nodes) < 3 || slices.ContainsFunc(f.Nodes, stopped) {
		return true
	}

	return f.Nodes[0].LiveVoters() >= 3
}

// Cut cuts the link between two nodes in both directions.
func (f *Fleet) Cut(a, b int) {
	f.network.set(func(l *link) { l.cut = true }, [2]int{a, b}, [2]int{b, a})
}

// CutOneWay stops everything from node a to node b.
func (f *Fleet) CutOneWay(a, b int) { f.network.set(func(l *link) { l.cut = true }, [2]int{a, b}) }

// Slow delays everything between two nodes.
func (f *Fleet) Slow(a, b int, delay time.Duration) {
	f.network.set(func(l *link) { l.delay = delay }, [2]int{a, b}, [2]int{b, a})
}

// Flap cuts and restores the link between two nodes in turn, until Heal.
func (f *Fleet) Flap(a, b int, period time.Duration) {
	f.network.flap(period, [2]int{a, b}, [2]int{b, a})
}

// Isolate cuts a node off from all others.
func (f *Fleet) Isolate(a int) { f.network.set(func(l *link) { l.cut = true }, f.linksOf(a)...) }

// Split cuts all links between two sides.
func (f *Fleet) Split(side, other []int) {
	for _, a := range side {
		for _, b := range other {
			f.Cut(a, b)
		}
	}
}

// Heal restores every link.
func (f *Fleet) Heal() { f.network.heal() }

// linksOf returns the links of a node in both directions.
func (f *Fleet) linksOf(a int) (links [][2]int) {
	for b := range f.Nodes {
		if a != b {
			links = append(links, [2]int{a, b}, [2]int{b, a})
		}
	}
	return links
}

// Move gives a stopped node new addresses for its next start.
func (n *Node) Move() { n.addr, n.gossip = "", "" }

// Ended waits until a node has ended by itself, and returns its error.
func (n *Node) Ended() error {
	n.t.Helper()
	// A node that was not started never ends.
	if n.cancel == nil {
		return errors.New("the node was not started")
	}

	select {
	case err := <-n.done:
		// Mark the node as stopped for Stop.
		n.cancel()
		n.cancel = nil
		return err
	case <-time.After(Patience):
		n.t.Fatal("the node does not end")
		return nil
	}
}

// subnet returns three numbers of loopback addresses that another fleet hardly has.
func subnet() string { return fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256)) }

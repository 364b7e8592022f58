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

// Fleet is nodes in one process under one cluster key, with links between
// them that can be cut. Each node has a loopback address of its own, so that
// it finds its ports free when it comes back.
type Fleet struct {
	Nodes  []*Node
	Key    string // text of the key file of the nodes added from now on
	Expect int    // BootstrapExpect of them

	t       testing.TB
	dir     string
	cfg     Config
	network *network
	subnet  string // first three numbers of the addresses
	timing  float64
}

// NewFleet makes a fleet without nodes that form clusters of expect. All
// nodes will have the same configuration. They are stopped when the test ends.
func NewFleet(t testing.TB, expect int, cfg Config) *Fleet {
	t.Helper()
	f := &Fleet{Key: wire.NewKey().Text(), Expect: expect, t: t, dir: t.TempDir(), cfg: cfg, network: newNetwork(), subnet: subnet(), timing: timing()}
	t.Cleanup(f.Stop)
	return f
}

// StartFleet starts n nodes that form one cluster; all have the same
// configuration. They are stopped when the test ends.
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

// Add adds a node and does not start it. It joins through all nodes that have
// an address by the time it starts.
func (f *Fleet) Add() *Node {
	f.t.Helper()
	i := len(f.Nodes)
	name := fmt.Sprintf("n%d", i+1)

	n := &Node{t: f.t, cfg: f.cfg, Dir: filepath.Join(f.dir, name), File: filepath.Join(f.dir, name+".json")}

	// Written here, for the options of a node have a path.
	if n.cfg.File == "" {
		n.cfg.File = "{}"
	}

	// A file for each node: a key is rotated at one after the other.
	n.KeyFile = filepath.Join(f.dir, name+".key")
	n.WriteKey(f.Key)

	// Read now: Expect may be another one for the nodes that are added later.
	host, expect := fmt.Sprintf("%s.%d", f.subnet, i+1), f.Expect

	// Called at each start, so that a node that comes back sees who is there by then.
	n.cfg.Edit = func(o *node.Options) {
		o.ClusterKeyFile, o.BootstrapExpect = n.KeyFile, expect
		o.Timing = f.timing // of all nodes the same

		o.Dial, o.Reach = f.network.dial(i), f.network.reach(i)

		// The system picks the ports once. After that they stay, for the others know them.
		o.ClusterListen, o.GossipListen = host+":0", host+":0"
		if n.addr != "" {
			o.ClusterListen, o.GossipListen = n.addr, n.gossip
		}

		// To join itself would be no error, and no help.
		for _, other := range f.Nodes {
			if other != n && other.gossip != "" {
				o.Join = append(o.Join, other.gossip)
			}
		}

		// The test's own last, so that it can change any of these.
		if f.cfg.Edit != nil {
			f.cfg.Edit(o)
		}
	}

	// The network learns the ports between New and Run: before a connection there is none to them.
	n.opened = func() {
		n.addr, n.gossip = n.ClusterAddr(), n.GossipAddr()
		f.network.own(n.addr, i)
		f.network.own(n.gossip, i)
	}

	n.Configure(n.cfg.File)
	f.Nodes = append(f.Nodes, n)
	return n
}

// WriteKey replaces the key file of a node of a fleet.
func (n *Node) WriteKey(text string) {
	n.t.Helper()
	n.replace(n.KeyFile, text+"\n")
}

// Stop stops every node, all at once.
func (f *Fleet) Stop() {
	f.Heal()

	// Together: one by one the last ones would look for a majority that has gone.
	var wg sync.WaitGroup
	for _, n := range f.Nodes {
		wg.Go(n.Stop)
	}
	wg.Wait()
}

// Crash ends a node without a word to the others: no lead is handed over, no
// job given back, no goodbye said. The files are closed in good order, though:
// what a killed process leaves is the business of the tests that kill one.
// The links of the node are whole afterwards.
//
// The first crash of a fleet of three and more waits until three nodes vote: a
// cluster that has just formed has one voter, and would not bear its loss.
func (f *Fleet) Crash(a int) {
	Eventually(Patience/9, f.bearsLoss)

	// Cut off first, so that what it says while it ends reaches nobody.
	f.Isolate(a)
	f.Nodes[a].Stop()
	f.network.set(func(l *link) { *l = link{} }, f.around(a)...)
}

// bearsLoss reports whether three of the nodes can be reached and vote; true where
// there are fewer, or one of them was stopped before.
func (f *Fleet) bearsLoss() bool {
	stopped := func(n *Node) bool { return n.cancel == nil }
	if len(f.Nodes) < 3 || slices.ContainsFunc(f.Nodes, stopped) {
		return true
	}

	return f.Nodes[0].LiveVoters() >= 3
}

// Cut cuts the link between two nodes, in both directions.
func (f *Fleet) Cut(a, b int) {
	f.network.set(func(l *link) { l.cut = true }, [2]int{a, b}, [2]int{b, a})
}

// CutOneWay lets nothing of node a come to node b.
func (f *Fleet) CutOneWay(a, b int) { f.network.set(func(l *link) { l.cut = true }, [2]int{a, b}) }

// Slow delays all that two nodes send each other.
func (f *Fleet) Slow(a, b int, delay time.Duration) {
	f.network.set(func(l *link) { l.delay = delay }, [2]int{a, b}, [2]int{b, a})
}

// Flap cuts and mends the link between two nodes in turn, until Heal.
func (f *Fleet) Flap(a, b int, period time.Duration) {
	f.network.flap(period, [2]int{a, b}, [2]int{b, a})
}

// Isolate cuts a node off from all others.
func (f *Fleet) Isolate(a int) { f.network.set(func(l *link) { l.cut = true }, f.around(a)...) }

// Split lets no node of one side hear one of the other.
func (f *Fleet) Split(side, other []int) {
	for _, a := range side {
		for _, b := range other {
			f.Cut(a, b)
		}
	}
}

// Heal mends every link.
func (f *Fleet) Heal() { f.network.heal() }

// around is the links of a node, in both directions.
func (f *Fleet) around(a int) (links [][2]int) {
	for b := range f.Nodes {
		if a != b {
			links = append(links, [2]int{a, b}, [2]int{b, a})
		}
	}
	return links
}

// Move gives a stopped node other addresses for its next start.
func (n *Node) Move() { n.addr, n.gossip = "", "" }

// Ended waits until a node has ended by itself and returns why. It is stopped
// then.
func (n *Node) Ended() error {
	n.t.Helper()
	// Nothing would ever come: its channel was made by no start, or was read.
	if n.cancel == nil {
		return errors.New("the node was not started")
	}

	select {
	case err := <-n.done:
		// So that Stop, at the end of the test, finds a node that is stopped.
		n.cancel()
		n.cancel = nil
		return err
	case <-time.After(Patience):
		n.t.Fatal("the node does not end")
		return nil
	}
}

// subnet is three numbers of loopback addresses that no other fleet is likely
// to have.
func subnet() string { return fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256)) }

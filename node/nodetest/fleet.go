package nodetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node"
)

// Fleet is a cluster of nodes in one process, with links that can be cut.
type Fleet struct {
	Nodes []*Node

	t     testing.TB
	mu    sync.Mutex // guards the fields below
	addrs map[string]int
	cut   map[[2]int]bool
	conns map[[2]int][]net.Conn
}

// StartFleet starts n nodes that form one cluster; all have the same
// configuration. They are stopped when the test ends.
func StartFleet(t testing.TB, n int, cfg Config) *Fleet {
	t.Helper()
	f := &Fleet{t: t, addrs: map[string]int{}, cut: map[[2]int]bool{}, conns: map[[2]int][]net.Conn{}}
	dir := t.TempDir()
	key := filepath.Join(dir, "cluster.key")
	if err := os.WriteFile(key, []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg.File == "" {
		cfg.File = "{}"
	}
	for i := range n {
		c := cfg
		c.Edit = func(o *node.Options) {
			o.ClusterKeyFile, o.BootstrapExpect = key, n
			o.Dial = f.dial(i)
			o.Reach = func(addr string) bool { return !f.isCut(i, addr) }
			for _, other := range f.Nodes {
				if other.Node != nil && other.gossip != "" {
					o.Join = append(o.Join, other.gossip)
				}
			}
			if i < len(f.Nodes) && f.Nodes[i].addr != "" {
				o.ClusterListen, o.GossipListen = f.Nodes[i].addr, f.Nodes[i].gossip
			}
			if cfg.Edit != nil {
				cfg.Edit(o)
			}
		}
		m := &Node{t: t, cfg: c, Dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1)), File: filepath.Join(dir, fmt.Sprintf("n%d.json", i+1))}
		m.Configure(cfg.File)
		m.launch()
		f.mu.Lock()
		m.addr, m.gossip = m.ClusterAddr(), m.GossipAddr()
		f.addrs[m.addr], f.addrs[m.gossip] = i, i
		f.mu.Unlock()
		f.Nodes = append(f.Nodes, m)
	}
	t.Cleanup(f.Stop)
	for _, m := range f.Nodes {
		m.waitReady()
	}
	return f
}

// Stop stops every node, all at once.
func (f *Fleet) Stop() {
	f.Heal()
	var wg sync.WaitGroup
	for _, n := range f.Nodes {
		wg.Go(n.Stop)
	}
	wg.Wait()
}

// Cut cuts the link between two nodes, in both directions.
func (f *Fleet) Cut(a, b int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, link := range [][2]int{{a, b}, {b, a}} {
		f.cut[link] = true
		for _, c := range f.conns[link] {
			c.Close()
		}
		delete(f.conns, link)
	}
}

// Isolate cuts a node off from all others.
func (f *Fleet) Isolate(a int) {
	for b := range f.Nodes {
		if a != b {
			f.Cut(a, b)
		}
	}
}

// Heal mends every link.
func (f *Fleet) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.cut)
}

func (f *Fleet) isCut(from int, addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, known := f.addrs[addr]
	return known && f.cut[[2]int{from, to}]
}

func (f *Fleet) dial(from int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f.isCut(from, addr) {
			return nil, errors.New("the link is cut")
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if to, known := f.addrs[addr]; known {
			f.conns[[2]int{from, to}] = append(f.conns[[2]int{from, to}], c)
		}
		return c, nil
	}
}

package thread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

const thread1 = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"

// world is some nodes with a catalog and a network. A single goroutine uses it.
type world struct {
	t     *testing.T
	now   time.Time
	state *catalog.State
	index uint64
	nodes []*node
}

// node is a node with its store, and whether it can be reached.
type node struct {
	*world
	id       string
	dir      string
	up       bool
	handlers map[string]cluster.Handler
	store    *Store
}

func newWorld(t *testing.T, nodes int) *world {
	w := &world{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), state: catalog.New()}
	dir := t.TempDir()
	for i := range nodes {
		n := &node{world: w, id: fmt.Sprintf("n%d", i), dir: filepath.Join(dir, fmt.Sprint(i))}
		w.nodes = append(w.nodes, n)
		w.do(&catalog.PutMember{Member: catalog.Member{ID: n.id, Epoch: 1 << 24, Addr: n.id + ":1"}})
	}
	for _, n := range w.nodes {
		n.start()
	}
	return w
}

// start starts a node on the contents of its directory.
func (n *node) start() {
	n.up, n.handlers = true, map[string]cluster.Handler{}
	n.store = New(Deps{
		Dir: n.dir, Net: n, View: n.state.View, Alive: func(id string) bool { return n.node(id).up }, Replicas: 2, Timing: 1,
		Secret: func(_ context.Context, name string) ([]byte, error) { return []byte("the secret " + name), nil },
		Age:    func() time.Duration { return 0 },
		Now:    func() time.Time { return n.now },
		Log:    slog.New(slog.DiscardHandler),
	})
}

func (n *node) kill() { n.up = false }

func (w *world) node(id string) *node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.id == id })]
}

func (n *node) Self() string    { return n.id }
func (*node) Lacks(string) bool { return false }

func (n *node) Handle(method string, h cluster.Handler) { n.handlers[method] = h }

// Call calls a node.
func (n *node) Call(ctx context.Context, id, method string, in []byte) ([]byte, error) {
	there := n.node(id)
	if !there.up {
		return nil, errors.New("a dead node")
	}
	return there.handlers[method](ctx, cluster.Peer{}, in)
}

// do changes the catalog.
func (w *world) do(cmd catalog.Command) {
	w.t.Helper()
	w.index++
	w.now = w.now.Add(time.Second)
	r := w.state.Apply(catalog.Entry{Index: w.index, At: w.now, Node: "n", Commands: []catalog.Command{cmd}})
	if r[0].Err != nil {
		w.t.Fatal(r[0].Err)
	}
}

// holdersOf returns the nodes that have a file.
func (w *world) holdersOf(file string) (ids []string) {
	for _, n := range w.nodes {
		if _, err := os.Stat(n.store.filePath(file)); err == nil {
			ids = append(ids, n.id)
		}
	}
	slices.Sort(ids)
	return ids
}

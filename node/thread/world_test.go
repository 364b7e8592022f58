package thread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// world is some nodes with a catalog and a network between them, in which
// things go wrong as a seed says. One goroutine works in it.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	faults bool
	now    time.Time
	state  *catalog.State
	index  uint64
	views  []*catalog.View // by index
	nodes  []*node
}

// node is one of them: its store, and the catalog as it sees it.
type node struct {
	*world
	id       string
	dir      string
	up       bool
	seen     uint64 // the view
	handlers map[string]cluster.Handler
	store    *Store
}

func newWorld(t *testing.T, seed uint64, nodes int) *world {
	w := &world{
		t:     t,
		rng:   rand.New(rand.NewPCG(seed, 7)),
		now:   time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
		state: catalog.New(),
	}
	w.views = []*catalog.View{w.state.View()}
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

// start starts a node on what is in its directory.
func (n *node) start() {
	n.up, n.seen, n.handlers = true, n.index, map[string]cluster.Handler{}
	n.store = New(Deps{
		Dir: n.dir, Net: n, View: n.view, Propose: n.propose, Alive: n.alive, Replicas: 2, Timing: 1,
		Secret: func(_ context.Context, name string) ([]byte, error) { return []byte("the secret " + name), nil },
		Age:    func() time.Duration { return 0 },
		Now:    func() time.Time { return n.now },
		Log:    slog.New(slog.DiscardHandler),
	})
	n.t.Cleanup(n.store.Close)
}

// kill ends a node at once. What it was about to write may be there in part.
func (n *node) kill() {
	n.up = false
	for _, p := range n.store.spools {
		if p.file != nil && n.rng.IntN(2) == 0 {
			n.tear(p.path)
		}
	}
	n.store.Close()
}

// tear leaves the beginning of an entry at the end of a log, of which some may
// be longer than the whole of the next one.
func (n *node) tear(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	torn := append([]byte{0, 0, 2, 0}, make([]byte, 400)...)
	if err := os.WriteFile(path, append(b, torn[:1+n.rng.IntN(400)]...), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (w *world) node(id string) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// unlucky is true once in a few times, where things go wrong at all.
func (w *world) unlucky(once int) bool { return w.faults && w.rng.IntN(once) == 0 }

func (n *node) Self() string                                     { return n.id }
func (n *node) Handle(method string, h cluster.Handler)          { n.handlers[method] = h }
func (n *node) alive(id string) bool                             { return n.node(id).up != n.unlucky(30) }
func (n *node) view() *catalog.View                              { n.catchUp(); return n.views[n.seen] }
func (w *world) do(cmd catalog.Command) (catalog.Result, uint64) { return w.apply(cmd), w.index }

// catchUp lets a node see some of what the catalog has, or all of it.
func (n *node) catchUp() {
	behind := int(n.index - n.seen)
	if behind > 0 && n.faults {
		behind = n.rng.IntN(behind + 1)
	}
	n.seen += uint64(behind)
}

var errFault = errors.New("a fault of the test")

// Call asks a node. The question, or the answer, may be lost.
func (n *node) Call(ctx context.Context, id, method string, in []byte) ([]byte, error) {
	there := n.node(id)
	if !n.up || there == nil || !there.up || n.unlucky(10) {
		return nil, errFault
	}
	out, err := there.handlers[method](ctx, cluster.Peer{}, in)
	if n.unlucky(10) {
		return nil, errFault
	}
	return out, err
}

func (w *world) apply(cmd catalog.Command) catalog.Result {
	w.index++
	w.now = w.now.Add(time.Second)
	r := w.state.Apply(catalog.Entry{Index: w.index, At: w.now, Node: "n", Commands: []catalog.Command{cmd}})
	w.views = append(w.views, w.state.View())
	return r[0]
}

// propose changes the catalog. It may be that this fails, or that only the
// answer to it is lost.
func (n *node) propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	if !n.up || n.unlucky(8) {
		return 0, errFault
	}
	r := n.apply(cmds[0])
	if n.unlucky(12) {
		return 0, errFault
	}
	if n.seen = n.index; r.Err != nil {
		return 0, fmt.Errorf("refused: %w", r.Err)
	}
	return n.index, nil
}

// holdersOf are the nodes that have a file.
func (w *world) holdersOf(file string) (ids []string) {
	for _, n := range w.nodes {
		if _, err := os.Stat(n.store.path(file)); err == nil {
			ids = append(ids, n.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Package clustertest is a cluster in memory for tests: the real catalog, and
// neither raft nor gossip nor a network. Commands are agreed on at once; a test
// says which nodes can be reached, whether there is a leader, and what time it
// is. Each node of a World has the methods of *cluster.Cluster that parts of a
// node take.
package clustertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Epoch is that of the first start of each node.
const Epoch = 1<<32 | 7

// World is a cluster and its clock. It is safe for concurrent use.
type World struct {
	t testing.TB

	mu      sync.Mutex // guards the fields below
	state   *catalog.State
	index   uint64
	now     time.Time
	changed chan struct{}
	dead    map[string]bool
	leading string // "" for nobody
	disk    map[string]uint8
}

// New makes a world with a configuration file and nodes n1, n2, ... which can
// all be reached; n1 leads. Further kinds of jobs are known to its catalog.
func New(t testing.TB, file string, nodes int, further ...catalog.JobRow) *World {
	t.Helper()
	w := &World{
		t: t, state: catalog.New(further...), now: time.Unix(1_700_000_000, 0), leading: "n1",
		changed: make(chan struct{}), dead: map[string]bool{}, disk: map[string]uint8{},
	}

	f, err := config.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}

	w.Do(&catalog.InitCluster{ID: "c"}, catalog.NewSetConfig([]byte(file), f))
	for i := range nodes {
		w.Join(fmt.Sprintf("n%d", i+1))
	}
	return w
}

// Join brings a node into the cluster, at an address of its own.
func (w *World) Join(id string) { w.JoinAt(id, id+":1") }

// JoinAt brings a node into the cluster.
func (w *World) JoinAt(id, addr string) {
	w.t.Helper()
	w.Do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: Epoch, Weight: 100, Zone: "z", Addr: addr}})
}

// Do applies commands, none of which may be refused.
func (w *World) Do(cmds ...catalog.Command) {
	w.t.Helper()
	_, results := w.Apply(cmds...)
	for i, r := range results {
		if r.Err != nil {
			w.t.Fatalf("%T: %v", cmds[i], r.Err)
		}
	}
}

// Apply applies commands, as they come out of the log, and returns their index
// and results.
func (w *World) Apply(cmds ...catalog.Command) (uint64, []catalog.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// Encoded and decoded, as the log would do: what gets lost on the way is found by tests.
	w.index++
	entry := catalog.Entry{At: w.now, Node: "n1", Commands: cmds}
	raw, err := entry.Encode()
	if err == nil {
		entry, err = catalog.DecodeEntry(w.index, raw)
	}
	if err != nil {
		panic(err) // not Fatal: nodes call it from goroutines of their own
	}

	results := w.state.Apply(entry)

	close(w.changed)
	w.changed = make(chan struct{})
	return w.index, results
}

// View is the catalog as it is now.
func (w *World) View() *catalog.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.View()
}

// Now is the time of the world.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Lose makes nodes unreachable, Find makes them reachable again.
func (w *World) Lose(ids ...string) { w.reach(true, ids) }

// Find is the reverse of Lose.
func (w *World) Find(ids ...string) { w.reach(false, ids) }

func (w *World) reach(dead bool, ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.dead[id] = dead
	}
}

// Alive reports whether a node can be reached.
func (w *World) Alive(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.View().Member(id) != nil && !w.dead[id]
}

// Lead makes a node the leader; "" leaves the cluster without one.
func (w *World) Lead(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leading = id
}

// Fill says how full the disk of a node is, in percent.
func (w *World) Fill(id string, percent uint8) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk[id] = percent
}

// Repos makes the connection of the configuration list repositories of these
// names. They get the numbers from 1.
func (w *World) Repos(connection string, names ...string) {
	w.t.Helper()
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: connection})
	fence := w.Grant(catalog.JobSync, connection, "n1")
	for part := range slices.Chunk(names, catalog.MaxPage) {
		page := &catalog.SyncPage{Connection: connection, Fence: fence}
		for _, name := range part {
			page.Repos = append(page.Repos, catalog.ListedRepo{Name: name})
		}
		w.Do(page)
	}
	w.Do(&catalog.FinishSync{Connection: connection, Fence: fence, Hash: w.View().Connection(connection).Hash, Complete: true, Listed: uint32(len(names))})
}

// Hide hides what only a connection lists, as when its host refuses the token for long.
func (w *World) Hide(connection string) {
	w.t.Helper()
	for range 2 {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: connection})
		fence := w.Grant(catalog.JobSync, connection, "n1")
		w.Do(&catalog.FinishJob{Kind: catalog.JobSync, Subject: connection, Fence: fence, Error: "401", NotBefore: w.Now(), TokenRefused: true})
		w.Pass(catalog.ServeRefused)
	}
	if w.View().Connection(connection).HiddenAt.IsZero() {
		w.t.Fatalf("connection %s is not hidden", connection)
	}
}

// Grant gives a waiting job to a node and returns its fence.
func (w *World) Grant(kind catalog.JobKind, subject, node string) uint64 {
	w.t.Helper()
	w.Do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: node, Epoch: Epoch, Deadline: w.Now().Add(time.Hour)})
	return w.View().Job(kind, subject).Fence
}

// Index gives a repository a generation of these shards, which a node holds.
func (w *World) Index(id catalog.RepoID, node string, shards ...catalog.ShardRef) {
	w.t.Helper()
	subject := catalog.RepoSubject(id)
	j := w.View().Job(catalog.JobIndex, subject)
	if j == nil || j.State != catalog.JobRunning {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject, Urgent: true})
		w.Grant(catalog.JobIndex, subject, node)
		j = w.View().Job(catalog.JobIndex, subject)
	}
	w.Do(&catalog.FinishIndex{Repo: id, Fence: j.Fence, InputKey: "k", Holder: node, Shards: shards})
}

// Confirm notes that a node has what keys name.
func (w *World) Confirm(node string, keys ...string) {
	w.t.Helper()
	w.Do(&catalog.Confirm{Node: node, Epoch: w.View().Member(node).Epoch, Held: keys})
}

// Drop notes that a node does not have what keys name any more.
func (w *World) Drop(node string, keys ...string) {
	w.t.Helper()
	w.Do(&catalog.Confirm{Node: node, Epoch: w.View().Member(node).Epoch, Lost: keys})
}

// Target says who should hold a unit.
func (w *World) Target(unit uint64, nodes ...string) {
	w.t.Helper()
	g := catalog.Group{Number: unit}
	for _, id := range nodes {
		g.Nodes = append(g.Nodes, w.View().Member(id).Number)
	}
	w.Do(&catalog.Place{Groups: []catalog.Group{g}})
}

// Node is the world as a node sees it.
func (w *World) Node(id string) *Node { return &Node{World: w, id: id} }

// Node is one node's part in a World.
type Node struct {
	*World
	id string
}

// Self is the id of the node.
func (n *Node) Self() string { return n.id }

// Epoch is that of the start of the node.
func (n *Node) Epoch() uint64 {
	if m := n.View().Member(n.id); m != nil {
		return m.Epoch
	}
	return 0
}

// Ready says that the node may act.
func (n *Node) Ready() error { return nil }

// Age says that the catalog is current.
func (n *Node) Age() time.Duration { return 0 }

// Time is the clock of what is agreed on.
func (n *Node) Time() time.Time { return n.Now() }

// Leading reports whether the node leads.
func (n *Node) Leading() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leading == n.id
}

// Changed is closed when the catalog changes.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Members are all that are not removed, by id.
func (n *Node) Members() []cluster.Member {
	view := n.View()
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []cluster.Member
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved {
			out = append(out, cluster.Member{Member: *m, Self: m.ID == n.id, Alive: !n.dead[m.ID], Load: cluster.Load{DiskUsed: n.disk[m.ID]}})
		}
	}
	return out
}

// ProposeAll applies commands where there is a leader.
func (n *Node) ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error) {
	n.mu.Lock()
	leading := n.leading
	n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if leading == "" {
		return 0, nil, cluster.ErrNoLeader
	}
	index, results := n.Apply(cmds...)
	return index, results, nil
}

// Propose is ProposeAll whose error is that of the first refused command.
func (n *Node) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	index, results, err := n.ProposeAll(ctx, cmds...)
	for i, r := range results {
		if err == nil && r.Err != nil {
			err = fmt.Errorf("%s: %w", catalog.CommandName(cmds[i]), r.Err)
		}
	}
	return index, err
}

// Outlived is nil: no other cluster takes the place of this one.
func (n *Node) Outlived() error { return nil }

// Await waits for nothing: what is agreed on is applied.
func (n *Node) Await(context.Context, uint64) error { return nil }

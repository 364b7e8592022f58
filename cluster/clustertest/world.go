// Package clustertest is a cluster in memory for tests: the real catalog without raft, gossip or
// network. Commands take effect at once. A test decides which nodes are reachable, whether there is
// a leader, and what time it is. A Node has the methods of *cluster.Cluster that parts of a node
// use.
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

// Epoch is the epoch of the first start of each node.
const Epoch = 1<<32 | 7

// World is a cluster with its clock. It is safe for concurrent use.
type World struct {
	t testing.TB

	mu      sync.Mutex // guards the fields below
	state   *catalog.State
	index   uint64
	now     time.Time
	changed chan struct{}
	dead    map[string]bool
	leading string // "": no leader
	disk    map[string]uint8
}

// New returns a world with a configuration file and reachable nodes n1, n2, ... n1 leads. further
// are kinds of jobs to add to its catalog.
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

// Join adds a node at the address id:1.
func (w *World) Join(id string) { w.JoinAt(id, id+":1") }

// JoinAt adds a node at an address.
func (w *World) JoinAt(id, addr string) {
	w.t.Helper()
	w.Do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: Epoch, Weight: 100, Zone: "z", Addr: addr}})
}

// Do applies commands. The test fails if one is refused.
func (w *World) Do(cmds ...catalog.Command) {
	w.t.Helper()
	_, results := w.Apply(cmds...)
	for i, r := range results {
		if r.Err != nil {
			w.t.Fatalf("%T: %v", cmds[i], r.Err)
		}
	}
}

// Apply applies commands as one entry, and returns its index and the results.
func (w *World) Apply(cmds ...catalog.Command) (uint64, []catalog.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// Encode and decode the entry as the log would, to find fields that the codec loses.
	w.index++
	entry := catalog.Entry{At: w.now, Node: "n1", Commands: cmds}
	raw, err := entry.Encode()
	if err == nil {
		entry, err = catalog.DecodeEntry(w.index, raw)
	}
	if err != nil {
		panic(err) // not Fatal: other goroutines call it
	}

	results := w.state.Apply(entry)

	close(w.changed)
	w.changed = make(chan struct{})
	return w.index, results
}

// View returns the present catalog.
func (w *World) View() *catalog.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.View()
}

// Now returns the time of the world.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Pass advances the clock.
func (w *World) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Lose makes nodes unreachable.
func (w *World) Lose(ids ...string) { w.reach(true, ids) }

// Find makes nodes reachable again.
func (w *World) Find(ids ...string) { w.reach(false, ids) }

// reach marks nodes as dead or alive.
func (w *World) reach(dead bool, ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.dead[id] = dead
	}
}

// Alive reports whether a node is reachable.
func (w *World) Alive(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.View().Member(id) != nil && !w.dead[id]
}

// Lead makes a node the leader. "" leaves the cluster without a leader.
func (w *World) Lead(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leading = id
}

// Fill sets how full the disk of a node is, in percent.
func (w *World) Fill(id string, percent uint8) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk[id] = percent
}

// Repos makes a connection list repositories with these names. They get numbers from 1.
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

// Hide hides the repositories of a connection: its host refuses the token for long.
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

// Grant grants a waiting job to a node and returns its fence.
func (w *World) Grant(kind catalog.JobKind, subject, node string) uint64 {
	w.t.Helper()
	w.Do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: node, Epoch: Epoch, Deadline: w.Now().Add(time.Hour)})
	return w.View().Job(kind, subject).Fence
}

// Index gives a repository a generation of these shards, held by a node.
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

// Confirm records that a node holds these keys.
func (w *World) Confirm(node string, keys ...string) {
	w.t.Helper()
	w.Do(&catalog.Confirm{Node: node, Epoch: w.View().Member(node).Epoch, Held: keys})
}

// Drop records that a node no longer holds these keys.
func (w *World) Drop(node string, keys ...string) {
	w.t.Helper()
	w.Do(&catalog.Confirm{Node: node, Epoch: w.View().Member(node).Epoch, Lost: keys})
}

// Target places a unit on nodes.
func (w *World) Target(unit uint64, nodes ...string) {
	w.t.Helper()
	g := catalog.Group{Number: unit}
	for _, id := range nodes {
		g.Nodes = append(g.Nodes, w.View().Member(id).Number)
	}
	w.Do(&catalog.Place{Groups: []catalog.Group{g}})
}

// Node returns the world as seen by a node.
func (w *World) Node(id string) *Node { return &Node{World: w, id: id} }

// Node is one node of a World.
type Node struct {
	*World
	id string
}

// Self returns the node's id.
func (n *Node) Self() string { return n.id }

// Epoch returns the epoch of the node's start.
func (n *Node) Epoch() uint64 {
	if m := n.View().Member(n.id); m != nil {
		return m.Epoch
	}
	return 0
}

// Ready returns nil: the node may always act.
func (n *Node) Ready() error { return nil }

// Age returns 0: the catalog is always current.
func (n *Node) Age() time.Duration { return 0 }

// Time returns the time of the world.
func (n *Node) Time() time.Time { return n.Now() }

// Leading reports whether the node is the leader.
func (n *Node) Leading() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leading == n.id
}

// Changed returns a channel that is closed when the catalog changes.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Members returns all members that are not removed, by id.
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

// ProposeAll applies commands if there is a leader.
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

// Propose applies commands, and returns the first refusal as an error.
func (n *Node) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	index, results, err := n.ProposeAll(ctx, cmds...)
	for i, r := range results {
		if err == nil && r.Err != nil {
			err = fmt.Errorf("%s: %w", catalog.CommandName(cmds[i]), r.Err)
		}
	}
	return index, err
}

// Outlived returns nil: no other cluster replaces this one.
func (n *Node) Outlived() error { return nil }

// Faults returns nothing: no node is separated from the others.
func (n *Node) Faults() []string { return nil }

// Await returns at once: every entry is already applied.
func (n *Node) Await(context.Context, uint64) error { return nil }

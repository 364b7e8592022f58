package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// testNodes is several nodes with one cluster key in this process.
type testNodes struct {
	t    *testing.T
	key  string // path of the key file
	dirs []string
	n    []*testNode
}

func newTestNodes(t *testing.T) *testNodes {
	t.Helper()
	f := &testNodes{t: t, key: filepath.Join(t.TempDir(), "cluster.key")}
	if err := os.WriteFile(f.key, []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// with returns options for a node that knows the gossip address of one other node.
func (f *testNodes) with(dir string, expect int) Options {
	o := options(f.t, dir)
	o.ClusterKeyFile, o.BootstrapExpect, o.Timing = f.key, expect, 0.5
	for _, n := range f.n {
		o.Join = append(o.Join, n.GossipAddr())
	}
	return o
}

// add starts a new node that joins through the others.
func (f *testNodes) add(expect int) *testNode {
	f.t.Helper()
	dir := f.t.TempDir()
	n := start(f.t, f.with(dir, expect))
	f.dirs = append(f.dirs, dir)
	f.n = append(f.n, n)
	return n
}

// restart restarts a node on its data directory, at new addresses.
func (f *testNodes) restart(i int) *testNode {
	f.t.Helper()
	f.n[i].stop()
	old := f.n
	f.n = slices.Delete(slices.Clone(f.n), i, i+1)
	o := f.with(f.dirs[i], 3)
	f.n = old
	f.n[i] = start(f.t, o)
	return f.n[i]
}

// settled waits until the nodes agree on everything and have this number of voters.
func (f *testNodes) settled(voters int, nodes ...*testNode) {
	f.t.Helper()
	until(f.t, fmt.Sprintf("%d nodes agree with %d voters", len(nodes), voters), func() bool {
		ids := map[string]bool{}
		for _, n := range nodes {
			count, alive := 0, 0
			for _, m := range n.Members() {
				if m.Voter {
					count++
				}
				if m.Alive {
					alive++
				}
			}
			ids[n.View().ClusterID()] = true
			if count != voters || alive < len(nodes) || n.Leader() == "" || n.Ready() != nil {
				return false
			}
		}
		return len(ids) == 1 && !ids[""]
	})
}

func (f *testNodes) leader() *testNode {
	f.t.Helper()
	var found *testNode
	until(f.t, "there is a leader", func() bool {
		for _, n := range f.n {
			if n.Leading() {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

func others(all []*testNode, not *testNode) []*testNode {
	return slices.DeleteFunc(slices.Clone(all), func(n *testNode) bool { return n == not })
}

func TestCluster_ofThreeNodesSurvivesItsLeader(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	until(t, "a node is ready", func() bool { return slices.ContainsFunc(f.n, func(n *testNode) bool { return n.Ready() == nil }) })
	if got := len(f.leader().replica.voters()); got != 3 {
		t.Errorf("a node of a new cluster is ready with %d votes given", got)
	}
	f.settled(3, f.n...)
	for i, n := range f.n {
		n.propose(set(fmt.Sprint("from", i), "v"))
	}
	for i := range f.n {
		for _, n := range f.n {
			until(t, "every node has every write", func() bool { return secretOf(n.View(), fmt.Sprint("from", i)) == "v" })
		}
	}
	old := f.leader()
	rest := others(f.n, old)
	old.stop()
	rest[0].propose(set("after", "v"))
	if _, err := rest[1].Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if secretOf(rest[1].View(), "after") != "v" {
		t.Fatal("a linearizable read misses a write")
	}

	// It returns at new addresses and catches up.
	i := slices.Index(f.n, old)
	again := f.restart(i)
	until(t, "the node that was away has caught up", func() bool { return secretOf(again.View(), "after") == "v" && again.Ready() == nil })
	again.propose(set("back", "v"))
	f.settled(3, f.n...)
}

func TestQuorumLoss_readsContinueAndWritesFail(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	f.settled(3, f.n...)
	f.n[0].propose(set("k", "v"))
	for _, n := range f.n {
		until(t, "every node has the write", func() bool { return secretOf(n.View(), "k") == "v" })
	}
	last := f.n[0]
	f.n[1].stop()
	f.n[2].stop()
	until(t, "the last node has no leader", func() bool { return last.Leader() == "" })
	short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := last.Propose(short, set("lost", "v")); err == nil || !strings.Contains(err.Error(), ErrNoLeader.Error()) {
		t.Fatalf("got %v", err)
	}
	if secretOf(last.View(), "k") != "v" || last.Ready() != nil {
		t.Fatal("reads do not go on")
	}
	age := last.Age()
	until(t, "its age grows", func() bool { return last.Age() > age })

	// Restarted without the others, it still serves what it knew.
	last = f.restart(0)
	if secretOf(last.View(), "k") != "v" {
		t.Fatal("after a restart without quorum a committed write is not served")
	}
}

func TestCluster_nodesJoinAndAreRemoved(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	first := f.add(1)
	first.propose(set("k", "v"))
	second := f.add(1)
	until(t, "the newcomer has the catalog", func() bool { return secretOf(second.View(), "k") == "v" && second.Ready() == nil })
	f.settled(1, first, second)
	third := f.add(1)
	f.settled(3, first, second, third)
	third.propose(set("third", "v"))

	if err := first.Drain(context.Background(), third.Self()); err != nil {
		t.Fatal(err)
	}
	until(t, "a draining node has no vote", func() bool {
		for _, m := range first.Members() {
			if m.ID == third.Self() {
				return !m.Voter && m.State == catalog.MemberDraining
			}
		}
		return false
	})
	if err := first.Remove(context.Background(), third.Self()); err != nil {
		t.Fatal(err)
	}
	until(t, "raft has forgotten the node", func() bool { return len(first.replica.servers()) == 2 })
}

// An operator who adds a used data directory to a cluster gets a second cluster, and has to know.
func TestFormation_aLoneClusterJoinsNoOther(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir())
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, join := range [][]string{nil, {"127.0.0.1:1"}} {
		if strings.Contains(log.String(), "--join") {
			t.Error(log.String())
		}
		o.Join = join
		n := start(t, o)
		announced(t, n)
		n.stop()
	}
	if !strings.Contains(log.String(), "--join has no effect") {
		t.Error(log.String())
	}
}

func TestFormation_fiveNodesFormOneCluster(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 5 {
		f.add(3)
	}
	f.settled(3, f.n...)
}

// Nodes stop talking to a removed node. If it voted or led, the remaining nodes must still have a
// majority.
func TestRemoveNode_ofARunningVoterKeepsAMajority(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	nodes := []*testNode{f.add(3), f.add(3), f.add(3)}
	f.settled(3, nodes...)
	for len(nodes) > 1 {
		leader := f.leader()
		nodes = slices.DeleteFunc(nodes, func(n *testNode) bool { return n == leader })
		if err := nodes[0].Remove(t.Context(), leader.Self()); err != nil {
			t.Fatal(err)
		}
		leader.stop()
		f.n = nodes
		until(t, "raft has forgotten the node", func() bool { return f.leader() != nil && len(f.leader().replica.servers()) == len(nodes) })
		f.settled(1, nodes...)
		nodes[0].propose(set("left", fmt.Sprint(len(nodes))))
	}
}

func TestRemoveNode_theRemovedNodeStopsWithAReason(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	first := f.add(1)
	second := f.add(1)
	f.settled(1, first, second)
	second.stop()
	if err := first.Remove(context.Background(), second.Self()); err != nil {
		t.Fatal(err)
	}
	expectRefused(t, f.with(f.dirs[1], 1), "it was removed")
}

func TestCopiedDataDirectory_isRefused(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	first := f.add(1)
	second := f.add(1)
	f.settled(1, first, second)
	second.stop()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(f.dirs[1])); err != nil {
		t.Fatal(err)
	}
	back := f.restart(1)
	until(t, "the original is back", func() bool {
		m := first.View().Member(back.Self())
		return m != nil && m.Epoch == back.Epoch()
	})

	// A copy is detected by one of three marks: the original answers, the number of starts, or the
	// end of the log. Which one depends on who answers first.
	marks := []string{"copied", "rolled back or is a copy", "went back in time"}
	expectRefused(t, f.with(copied, 1), marks...)

	// A copy that was started more often than the original does not replace it either.
	expectRefused(t, f.with(copied, 1), marks...)
	if m := first.View().Member(back.Self()); m.Epoch != back.Epoch() {
		t.Fatal("the copy took over")
	}
}

// expectRefused starts a node that must stop for one of these reasons.
func expectRefused(t *testing.T, o Options, why ...string) {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = c.Run(ctx)
	if err == nil || !slices.ContainsFunc(why, func(w string) bool { return strings.Contains(err.Error(), w) }) {
		t.Fatalf("got %v, want an error with one of %q", err, why)
	}
}

func TestPlanVoters_choosesTheNextStep(t *testing.T) {
	t.Parallel()
	const h, d = 10 * time.Second, time.Minute
	node := func(text string) candidate {
		c := candidate{healthy: h}
		parts := strings.Split(text, ",")
		c.id, c.zone = parts[0], parts[1]
		for _, p := range parts[2:] {
			switch p {
			case "voter":
				c.voter = true
			case "leader":
				c.voter, c.leader = true, true
			case "dead":
				c.healthy, c.dead = 0, 2*d
			case "away":
				c.healthy, c.dead = 0, time.Second
			case "new":
				c.healthy = time.Second
			case "draining":
				c.draining = true
			case "removed":
				c.removed = true
			}
		}
		return c
	}
	for _, tt := range []struct{ nodes, want string }{
		{"a,z,leader", "none "},
		{"a,z,leader b,z", "none "},
		{"a,z,leader b,z c,z", "promote b"},
		{"a,z,leader b,z,new c,z", "promote c"},
		{"a,z,leader b,z,voter c,z", "promote c"},
		{"a,z,leader b,z,voter c,z,voter", "none "},
		{"a,z,leader b,z,voter c,z,voter,away d,z", "none "},
		{"a,z,leader b,z,voter c,z,voter,dead", "none "},
		{"a,z,leader b,z,voter c,z,voter,dead d,z", "demote c"},
		{"a,z,leader b,z,voter c,z,dead d,z", "promote d"},
		{"a,z,leader b,z,voter c,z,voter,dead d,z,voter", "demote c"},
		{"a,z,leader b,z,voter c,z,voter,draining", "demote c"},
		{"a,z,leader,draining b,z,voter c,z,voter d,z", "transfer b"},
		{"a,z,leader,draining b,z,voter c,z,voter d,z,voter", "transfer b"},
		{"a,z,leader b,z,voter,removed c,z,voter", "forget b"},
		{"a,z,leader,removed b,z,voter c,z,voter", "transfer b"},
		{"a,z,leader,draining b,z,voter,draining c,z,voter", "transfer c"},
		{"a,z,leader,draining b,z,voter,away c,z,voter", "transfer c"},
		{"a,x,leader b,x,voter c,x,voter d,y", "promote d"},
		{"a,x,leader b,x,voter c,x,voter d,y,voter", "demote c"},
		{"a,x,leader b,x,voter c,y,voter d,y", "none "},
		{"a,x,leader b,y,voter c,x e,z", "promote e"},
		{"a,z,leader b,z,voter", "demote b"},
		{"a,z,leader b,z,voter c,z,voter d,z e,z f,z g,z h,z i,z j,z", "promote d"},
	} {
		var nodes []candidate
		for _, n := range strings.Fields(tt.nodes) {
			nodes = append(nodes, node(n))
		}
		got := planVoters(nodes, h, d)
		if s := got.kind.String() + " " + got.id; s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.nodes, s, tt.want)
		}
	}
}

// A leader that vanishes silently, as behind a cut cable, must not delay a write for long: the next
// leader gets it.
func TestPropose_doesNotWaitForAVanishedLeader(t *testing.T) {
	t.Parallel()
	f, cutter, _ := cutOff(t)
	leader := f.leader()
	rest := others(f.n, leader)
	for i, n := range rest { // open the connections and make calls on them
		n.propose(set(fmt.Sprint("before", i), "v"))
	}
	cutter.cut(slices.Index(f.n, leader), leader.ClusterAddr())
	ctx, cancel := context.WithTimeout(context.Background(), patience/3)
	defer cancel()
	if _, err := rest[0].Propose(ctx, set("after", "v")); err != nil {
		t.Error(err)
	}
	cutter.cut(-1, "")
}

// Whoever proposes learns whether the commands may still take effect: they may if a leader had them and
// did not answer, and not if there was no leader.
func TestPropose_saysWhetherTheCommandsMayStillTakeEffect(t *testing.T) {
	t.Parallel()
	f, cutter, _ := cutOff(t)
	leader := f.leader()
	rest := others(f.n, leader)
	rest[0].propose(set("before", "v")) // opens the connection
	cutter.cut(slices.Index(f.n, leader), leader.ClusterAddr())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // before there is another leader
	defer cancel()
	if _, err := rest[0].Propose(ctx, set("after", "v")); !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, ErrNoLeader) {
		t.Errorf("a leader that does not answer: %v, want %v", err, ErrUnconfirmed)
	}
	cutter.cut(-1, "")

	leader = f.leader()
	rest = others(f.n, leader)
	for _, n := range []*testNode{leader, rest[0]} {
		n.stop()
	}
	until(t, "the last node has no leader", func() bool { return rest[1].replica.leader() == "" })
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := rest[1].Propose(ctx, set("alone", "v")); !errors.Is(err, ErrNoLeader) || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("no leader: %v, want %v alone", err, ErrNoLeader)
	}
}

// linkCutter connects nodes until one is cut off. Messages to and from that node then wait until the
// connection is closed.
type linkCutter struct {
	mu   sync.Mutex // guards the fields below
	node int
	addr string
	ends []chan struct{} // of waiting connections
}

func (c *linkCutter) cut(node int, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node, c.addr = node, addr
	for _, end := range c.ends {
		close(end)
	}
	c.ends = nil
}

// wait returns at once between nodes that are not cut off.
func (c *linkCutter) wait(from int, addr string, closed <-chan struct{}) {
	c.mu.Lock()
	if c.addr != addr && c.node != from {
		c.mu.Unlock()
		return
	}
	end := make(chan struct{})
	c.ends = append(c.ends, end)
	c.mu.Unlock()
	select {
	case <-end:
	case <-closed:
	}
}

func (c *linkCutter) dial(ctx context.Context, from int, network, addr string) (net.Conn, error) {
	c.wait(from, addr, ctx.Done())
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cuttableConn{Conn: conn, cutter: c, from: from, addr: addr, closed: make(chan struct{})}, nil
}

// cuttableConn is a connection that a linkCutter can cut.
type cuttableConn struct {
	net.Conn
	cutter *linkCutter
	from   int
	addr   string
	once   sync.Once
	closed chan struct{}
}

func (c *cuttableConn) Write(b []byte) (int, error) {
	c.cutter.wait(c.from, c.addr, c.closed)
	return c.Conn.Write(b)
}

func (c *cuttableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.cutter.wait(c.from, c.addr, c.closed)
	return n, err
}

func (c *cuttableConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Raft tells followers about a commit with the next message only. A drained node must know at once,
// since balancers ask it.
func TestDrain_theNodeKnowsItAtOnce(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	f.settled(3, f.n...)
	for round := range 6 {
		by, drained := f.n[round%3], f.n[(round+1)%3]
		if err := by.Drain(t.Context(), drained.Self()); err != nil {
			t.Fatal(err)
		}
		if m := drained.View().Member(drained.Self()); m.State != catalog.MemberDraining {
			t.Errorf("round %d: a node that was just drained does not know", round)
		}
		if err := by.Undrain(t.Context(), drained.Self()); err != nil {
			t.Fatal(err)
		}
	}
}

// Members have the names from gossip, even if a node no longer answers.
func TestMembers_haveTheNamesFromGossip(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for _, name := range []string{"alpha", "beta", ""} {
		o := f.with(t.TempDir(), 3)
		o.Name = name
		f.n = append(f.n, start(t, o))
	}
	f.settled(3, f.n...)
	named := func(at *testNode, want string) {
		until(t, "the members are called "+want, func() bool {
			var names []string
			for _, n := range f.n {
				i := slices.IndexFunc(at.Members(), func(m Member) bool { return m.ID == n.Self() })
				names = append(names, at.Members()[i].Name+"="+at.NameOf(n.Self()))
			}
			return strings.Join(names, " ") == want
		})
	}
	for _, n := range f.n {
		named(n, "alpha=alpha beta=beta =")
	}
	f.n[1].stop()
	until(t, "beta is silent", func() bool { return !f.n[0].Alive(f.n[1].Self()) })
	named(f.n[0], "alpha=alpha beta=beta =")
}

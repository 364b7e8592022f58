package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// laterBuild is a program that knows level 2, at which setting a configuration also writes a
// secret.
func laterBuild() catalog.Build {
	return catalog.Build{Lowest: 1, Versions: []string{"0.1.0", "0.2.0"}, Also: func(v *catalog.View, c catalog.Command) []catalog.Command {
		if v.Level().Number < 2 {
			return nil
		}
		return traceOf(v, c)
	}}
}

// wrongBuild is a program with the same change, but without a new level.
func wrongBuild() catalog.Build {
	return catalog.Build{Lowest: 1, Versions: []string{"0.1.0"}, Also: traceOf}
}

func traceOf(v *catalog.View, c catalog.Command) []catalog.Command {
	if _, ok := c.(*catalog.SetConfig); !ok {
		return nil
	}
	return []catalog.Command{set("trace", fmt.Sprint(v.Index()))}
}

// build starts a node with a program, on a new or an existing directory.
func (f *testNodes) build(dir string, b catalog.Build) *testNode {
	f.t.Helper()
	o := f.with(dir, 3)
	o.Build = b
	return start(f.t, o)
}

// testNodesOf starts a cluster of nodes with these programs.
func testNodesOf(t *testing.T, builds ...catalog.Build) *testNodes {
	t.Helper()
	f := newTestNodes(t)
	for _, b := range builds {
		dir := t.TempDir()
		n := f.build(dir, b)
		f.dirs, f.n = append(f.dirs, dir), append(f.n, n)
	}
	f.settled(3, f.n...)
	f.announced()
	return f
}

// announced waits until the catalog has the levels that each node can apply.
func (f *testNodes) announced() {
	f.t.Helper()
	until(f.t, "every node has announced its levels", func() bool {
		for _, n := range f.n {
			for _, m := range f.n {
				if r := n.View().Member(m.Self()); r == nil || r.Highest != m.o.Build.Highest() {
					return false
				}
			}
		}
		return true
	})
}

// push proposes a configuration on all nodes at once.
func (f *testNodes) push(text string) {
	f.t.Helper()
	var all sync.WaitGroup
	for _, n := range f.n {
		all.Go(func() {
			if _, err := n.Propose(f.t.Context(), &catalog.SetConfig{Raw: []byte(text), Hash: text, Instead: catalog.InsteadOfAny}); err != nil {
				f.t.Error(err)
			}
		})
	}
	all.Wait()
}

// equal waits until the nodes are at one index, and checks that their hashes are equal.
func (f *testNodes) equal() {
	f.t.Helper()
	until(f.t, "the nodes are at one index", func() bool {
		views := make([]*catalog.View, len(f.n))
		for i, n := range f.n {
			views[i] = n.View()
			if views[i].Index() != views[0].Index() {
				return false
			}
		}
		for i, v := range views {
			if v.Hash() != views[0].Hash() {
				f.t.Fatalf("at entry %d node %d has another catalog than the first", v.Index(), i)
			}
		}
		return true
	})
}

// While a cluster forms, its founder raises no level: other nodes may be older, and could never
// join. It stops waiting after a while, in case nodes are lost for good.
func TestFormatLevel_isNotRaisedWhileAClusterForms(t *testing.T) {
	t.Parallel()
	f, dir := newTestNodes(t), t.TempDir()
	o := f.with(dir, 1)
	o.Build = catalog.ThisBuild()
	start(t, o).stop()

	o = f.with(dir, 3)
	o.Build = laterBuild()
	n := start(t, o)
	until(t, "the node leads and has announced its levels", func() bool {
		m := n.View().Member(n.Self())
		return m != nil && m.Highest == 2 && n.replica.leading.Load()
	})
	raise := func(age time.Duration) uint64 {
		w := &watch{env: n.env, replica: n.replica, proposer: n.proposer, build: n.o.Build, expect: 3, started: n.started.Add(-age)}
		w.raiseLevel(t.Context())
		return n.View().Level().Number
	}
	if level := raise(0); level != 1 {
		t.Errorf("with one of three nodes the level is %d", level)
	}
	if level := raise(time.Hour); level != 2 {
		t.Errorf("an hour later the level is %d", level)
	}
}

// Two programs with different rules for one entry stay equal: the new rule waits until the last
// node knows it, and then begins at the same entry everywhere.
func TestFormatLevel_aChangedRuleWaitsForTheLastNode(t *testing.T) {
	t.Parallel()
	f := testNodesOf(t, laterBuild(), laterBuild(), catalog.ThisBuild())
	for i := range 4 {
		f.push(fmt.Sprint("mixed", i))
	}
	f.equal()
	for _, n := range f.n {
		if v := n.View(); v.Level().Number != 1 || secretOf(v, "trace") != "" {
			t.Fatalf("with an older node the level is %d, and the new rule left %q", v.Level().Number, secretOf(v, "trace"))
		}
	}

	// Upgrade the last node.
	f.n[2].stop()
	old := f.n
	f.n = f.n[:2]
	last := f.build(f.dirs[2], laterBuild())
	f.n = old
	f.n[2] = last
	for _, n := range f.n {
		until(t, "the level has risen", func() bool { return n.View().Level().Number == 2 })
		if got, want := n.View().Level(), f.n[0].View().Level(); got != want || got.Version != "0.2.0" {
			t.Errorf("the level is %+v, at the first node %+v", got, want)
		}
	}

	f.push("upgraded")
	f.equal()
	if secretOf(f.n[2].View(), "trace") == "" {
		t.Error("the new rule is not in force")
	}

	// A downgrade is refused by the directory and by the other nodes, with the version to start.
	const want = "start version 0.2.0 or a later one"
	f.n[2].stop()
	f.n = f.n[:2]
	o := f.with(f.dirs[2], 3)
	if _, err := New(o); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("the older program on the directory: %v", err)
	}
	c, err := New(f.with(t.TempDir(), 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("a new node of the older program: %v", err)
	}
}

// A rule that changes without a level makes the catalogs differ. The next check detects it.
func TestCatalogCheck_detectsARuleChangedWithoutALevel(t *testing.T) {
	t.Parallel()
	f := testNodesOf(t, catalog.ThisBuild(), catalog.ThisBuild(), wrongBuild())
	f.push("mixed")
	until(t, "the node finds that its catalog differs", func() bool { return f.n[2].arbiter.replaced.Load() > 0 })
	f.equal()
}

// An unknown level stops the node for good, whether it comes as an entry, in its own log, or in a
// snapshot.
func TestNode_stopsAtAnUnknownFormatLevel(t *testing.T) {
	t.Parallel()
	entry := func(cmds ...catalog.Command) []byte {
		data, err := (&catalog.Entry{Commands: cmds}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	logs := []*raft.Log{
		{Index: 1, Data: entry(&catalog.PutMember{Member: catalog.Member{ID: "n1", Epoch: catalog.NewEpoch(1, 0), Lowest: 1, Highest: 2}})},
		{Index: 2, Data: entry(&catalog.RaiseLevel{Level: 2, Version: "0.2.0"})},
		{Index: 3, Data: entry(set("after", "v"))},
	}
	raised := newMachine(discardLog(), laterBuild(), func(err error) { t.Error(err) }, func(uint64) {})
	raised.ApplyBatch(logs)
	var snapshot bytes.Buffer
	if err := raised.view.Load().Save(&snapshot); err != nil {
		t.Fatal(err)
	}

	for name, reach := range map[string]func(*machine) error{
		"entry": func(m *machine) error { m.ApplyBatch(logs); return nil },
		"log": func(m *machine) error {
			store := raft.NewInmemStore()
			return errors.Join(store.StoreLogs(logs), m.replay(store, 3))
		},
		"snapshot": func(m *machine) error { return m.Restore(io.NopCloser(bytes.NewReader(snapshot.Bytes()))) },
	} {
		var stopped []error
		m := newMachine(discardLog(), catalog.ThisBuild(), func(err error) { stopped = append(stopped, err) }, func(uint64) {})
		err := reach(m)
		if len(stopped) != 1 || !errors.Is(stopped[0], ErrRefused) || !strings.Contains(stopped[0].Error(), "start version 0.2.0 or a later one") {
			t.Errorf("%s: it stops with %v", name, stopped)
		}
		if name == "log" && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the start says %v", name, err)
		}
		if got := secretOf(m.view.Load(), "after"); got != "" {
			t.Errorf("%s: what follows was applied", name)
		}
	}
}

// A check follows a change after a minute or a thousand entries. After a confirmed check nothing is
// due; an unconfirmed one is repeated after a while.
func TestCatalogCheck_isDueAMinuteOrAThousandEntriesAfterAChange(t *testing.T) {
	t.Parallel()
	const last = 5000 // index of the last check
	for name, c := range map[string]struct {
		applied       uint64
		quiet, waited time.Duration
		want          bool
	}{
		"nothing has changed":                {last, time.Hour, time.Hour, false},
		"changes go on":                      {last + 7, time.Second, time.Second, false},
		"no change for a moment":             {last + 1, 2 * time.Second, 2 * time.Second, true},
		"many changes":                       {last + 1000, 0, time.Second, true},
		"changes go on for long":             {last + 7, time.Second, 30 * time.Second, true},
		"a log behind that of a former lead": {last - 7, time.Hour, 0, true},
	} {
		if got := (checkpoint{index: last}).isDue(c.applied, c.quiet, c.waited); got != c.want {
			t.Errorf("%s: due %v, want %v", name, got, c.want)
		}
	}

	if between := checkpointAt(last, last+3, false); !between.isDue(last+3, time.Hour, 0) {
		t.Error("two entries came before that of the check: they are never compared")
	}
	if next := checkpointAt(last, last+1, false); next.isDue(last+1, time.Hour, time.Hour) {
		t.Error("a check follows a check")
	}

	open := checkpoint{index: last, open: true}
	for waited, want := range map[time.Duration]bool{time.Second: false, 30 * time.Second: true} {
		if got := open.isDue(last, time.Hour, waited); got != want {
			t.Errorf("%v after a check that nobody confirmed: due %v, want %v", waited, got, want)
		}
	}
}

// A node with a third release is refused for good, as a new node and as a restarted member. It is
// admitted once the node with the oldest release is upgraded.
func TestCluster_refusesANodeOfAThirdRelease(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	run := func(dir, version string) *testNode {
		o := f.with(dir, 3)
		o.Version = version
		n := start(t, o)
		f.n = append(f.n, n)
		return n
	}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for i, version := range []string{"0.2.0", "0.2.0", "0.1.0"} {
		run(dirs[i], version)
	}
	f.settled(3, f.n...)
	f.announced()
	old := f.n[2]

	refusedOf := func(dir string) {
		t.Helper()
		o := f.with(dir, 3)
		o.Version = "0.3.0"
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const want = "version 0.3.0 of this node and version 0.1.0 of node "
		if err := c.Run(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want+old.Self()) {
			t.Errorf("a third release: %v", err)
		}
	}
	refusedOf(t.TempDir())
	f.n[1].stop()
	f.n = []*testNode{f.n[0], old}
	refusedOf(dirs[1])

	// Upgrade the oldest node to the release in between; then the newest one is admitted.
	old.stop()
	f.n = f.n[:1]
	run(dirs[1], "0.2.0") // the leader must see two of the three nodes
	run(dirs[2], "0.2.0")
	f.settled(3, f.n...)
	f.announced()
	f.n[1].stop()
	f.n = []*testNode{f.n[0], f.n[2]}
	run(dirs[1], "0.3.0")
	f.announced()
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// patience is how long a test waits for a condition.
const patience = 90 * time.Second

// testNode is a node that runs in this process.
type testNode struct {
	*Cluster
	t    *testing.T
	stop func() error
}

// options returns the options of a lone node in dir.
func options(t *testing.T, dir string) Options {
	return Options{DataDir: dir, HoldTime: patience, Timing: 3, ClusterListen: "127.0.0.1:0", GossipListen: "127.0.0.1:0",
		Exit: func(reason string) { t.Error("the node would exit:", reason) }}
}

// watchful returns the options of a node that reads its key file often.
func watchful(t *testing.T, dir string) Options {
	o := options(t, dir)
	o.Timing = 0.5
	return o
}

func start(t *testing.T, o Options) *testNode {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, c)
}

// run runs a node until the test ends.
func run(t *testing.T, c *Cluster) *testNode {
	t.Helper()
	n := &testNode{Cluster: c, t: t}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	n.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { n.stop() })
	return n
}

// founded reports whether the identity on disk says that the founding is complete.
func (n *testNode) founded() bool { return !n.self.founding() }

// propose proposes commands that must be accepted.
func (n *testNode) propose(cmds ...catalog.Command) uint64 {
	n.t.Helper()
	index, err := n.Propose(context.Background(), cmds...)
	if err != nil {
		n.t.Fatal(err)
	}
	return index
}

// until waits until a condition holds. It checks at every change of the catalog, and regularly.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %v it does not hold that %s", patience, what)
		}
	}
}

func secretOf(v *catalog.View, name string) string {
	if s := v.Secret(name); s != nil {
		return string(s.Sealed)
	}
	return ""
}

func set(name, value string) catalog.Command {
	return &catalog.SetSecret{Name: name, Sealed: []byte(value)}
}

func TestLoneNode_losesNoAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	var last uint64
	for i := range 50 {
		last = n.propose(set(fmt.Sprint("k", i), "v"))
	}
	until(t, "the node is in the catalog", func() bool { return n.View().Member(n.Self()) != nil })
	id, self := n.View().ClusterID(), n.Self()
	if id == "" {
		t.Fatal("the cluster has no id")
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}

	// Committed entries are served before anything else happens.
	c, err := New(options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if c.View().Index() < last || secretOf(c.View(), "k49") != "v" || c.View().ClusterID() != id || c.Self() != self {
		t.Fatalf("after a restart the catalog is at %d, want at least %d", c.View().Index(), last)
	}
	c.Close()

	again := start(t, options(t, dir))
	again.propose(set("k50", "v"))
	until(t, "the new start is in the catalog", func() bool {
		m := again.View().Member(self)
		return m != nil && catalog.EpochStart(m.Epoch) == 3
	})
	if _, err := again.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !again.Leading() || again.Leader() != self || again.Age() != 0 || again.Ready() != nil {
		t.Fatal("the only node does not lead")
	}
	if m := again.Members(); len(m) != 1 || !m[0].Self || !m[0].Leader || !m[0].Voter || !m[0].Alive {
		t.Fatalf("got %+v", m)
	}
}

func TestPropose_returnsARefusalOfTheCatalog(t *testing.T) {
	t.Parallel()
	n := start(t, options(t, t.TempDir()))
	_, err := n.Propose(context.Background(), &catalog.RevokeKey{ID: "none"}, set("after", "it"))
	no, ok := catalog.Refused(err)
	if !ok || no.Code != catalog.NotFound || secretOf(n.View(), "after") != "it" {
		t.Fatalf("got %v", err)
	}
	_, results, err := n.ProposeAll(context.Background(), &catalog.RevokeKey{ID: "none"}, &catalog.Noop{})
	if err != nil || results[0].Err == nil || results[1].Err != nil {
		t.Fatalf("got %+v, %v", results, err)
	}
}

func TestSecret_isCreatedOnceAndStoredSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	first, err := n.Secret(context.Background(), "keys")
	if err != nil || len(first) != 32 {
		t.Fatal(err)
	}
	n.stop()
	n = start(t, options(t, dir))
	again, err := n.Secret(context.Background(), "keys")
	if err != nil || string(again) != string(first) {
		t.Fatalf("the secret changed: %v", err)
	}
	if strings.Contains(secretOf(n.View(), "keys"), string(first)) {
		t.Fatal("the secret lies open in the catalog")
	}
}

func TestDataDirectory_isLockedByOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, options(t, dir))
	if _, err := New(options(t, dir)); !errors.Is(err, ErrInUse) {
		t.Fatalf("got %v", err)
	}
}

func TestDataDirectory_withoutItsLogIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	n.propose(set("a", "b"))
	until(t, "the cluster is founded", n.founded)
	n.stop()
	if err := os.RemoveAll(filepath.Join(dir, "raft")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(options(t, dir)); err == nil || !strings.Contains(err.Error(), "must not forget its votes") {
		t.Fatalf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "node.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(options(t, dir)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("got %v", err)
	}
}

func TestSnapshot_replacesTheLogWithoutLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	for i := range 20 {
		n.propose(set(fmt.Sprint("k", i), "v"))
	}
	if err := n.replica.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	n.propose(set("after", "v"))
	n.stop()
	n = start(t, options(t, dir))
	if secretOf(n.View(), "k19") != "v" || secretOf(n.View(), "after") != "v" {
		t.Fatal("something was lost")
	}
}

func TestDiskWatchdog_endsTheProcessIfTheDiskStalls(t *testing.T) {
	t.Parallel()
	reasons := make(chan string, 2)
	dog := &watchdog{limit: time.Millisecond, exit: func(r string) { reasons <- r }}
	stalled := make(chan struct{})
	go dog.guard("write", func() error { <-stalled; return nil })
	if r := <-reasons; !strings.Contains(r, "more than 1ms to write") {
		t.Fatalf("got %s", r)
	}
	close(stalled)
	dog.limit = time.Hour
	dog.guard("write", func() error { return errors.New("no space left") })
	if r := <-reasons; !strings.Contains(r, "no space left") {
		t.Fatalf("got %s", r)
	}
}

func TestServePropose_refusesUnreadableEntries(t *testing.T) {
	t.Parallel()
	n := start(t, options(t, t.TempDir()))
	n.propose(set("before", "v"))
	good, err := (&catalog.Entry{Commands: []catalog.Command{set("a", "v")}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	unknown := append([]byte{}, good...)
	unknown[len(unknown)-len(good)+20] = 0x7f // the command number
	for name, in := range map[string][]byte{"cut": good[:len(good)-1], "nothing": nil, "a later version": append([]byte{9}, good[1:]...), "an unknown command": unknown} {
		if _, err := n.Call(context.Background(), n.Self(), methodPropose, in); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	n.propose(set("after", "v"))
}

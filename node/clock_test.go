package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// After the clocks are set back by an hour, new copies do not wait for that hour.
func TestClockSetBack_doesNotDelayCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "narwhal\n"})
	var skew atomic.Int64
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	}})
	copied := func(commit string) {
		t.Helper()
		for _, n := range f.Nodes {
			n.Wait("both copies of "+commit, func() error {
				if got := n.Find(commit); len(got) != 1 {
					return fmt.Errorf("found %q", got)
				}
				if p := n.Status().Placement; p.UnderReplicated > 0 || p.Groups == 0 {
					return fmt.Errorf("%+v", p)
				}
				return nil
			})
		}
	}
	copied("narwhal")

	skew.Store(-int64(time.Hour))
	for i := range 3 {
		word := fmt.Sprintf("beluga%d", i)
		app.Commit(map[string]string{"b.txt": word + "\n"})
		if _, err := f.Nodes[0].Operate.Reindex(t.Context(), account.Operator(), 1); err != nil {
			t.Fatal(err)
		}
		copied(word)
	}
}

// The leader's clock was two hours ahead, so agreed times are in the next leader's future. New
// pushes are still polled, indexed and found.
func TestLeaderClockAhead_pushesAreStillFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Hour))
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	n.WaitIndexed(1)

	n.Stop()
	ahead.Store(0)
	n.Start()
	repo.Commit(map[string]string{"b.txt": "narwhal\n"})
	n.Wait("the push", found(n, "narwhal", "local/app:b.txt"))
	for _, j := range n.Status().Running {
		if j.Error != "" {
			t.Errorf("the job %s %s failed: %s", j.Kind, j.Subject, j.Error)
		}
	}
}

// The leader's clock is two hours off. Agreed times follow most nodes, and each node's status
// names the wrong clock.
func TestWrongLeaderClock_hasNoEffect(t *testing.T) {
	t.Parallel()
	skews := map[string]*atomic.Int64{}
	f := nodetest.StartFleet(t, 3, nodetest.Config{Edit: func(o *node.Options) {
		skew := skews[o.Dir]
		if skew == nil {
			skew = new(atomic.Int64)
			skews[o.Dir] = skew
		}
		o.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	}})
	f.Nodes[0].Wait("three voters", threeVoters(f.Nodes[0]))

	leader := f.Nodes[0].Status().Leader
	for _, n := range f.Nodes {
		if n.ID() == leader {
			skews[n.Dir].Store(int64(2 * time.Hour))
		}
	}
	for _, n := range f.Nodes {
		want := leader + " is 2h0m0s ahead"
		if n.ID() == leader {
			want = "is 2h0m0s behind"
		}
		n.Wait("the clock", func() error {
			if said := strings.Join(n.Status().Warnings, "\n"); !strings.Contains(said, want) {
				return fmt.Errorf("the warnings are %q, want one with %q", said, want)
			}
			return nil
		})
	}

	// A node that is not ready, here since it is drained, names its clock, too.
	wrong := f.Nodes[slices.IndexFunc(f.Nodes, func(n *nodetest.Node) bool { return n.ID() == leader })]
	if _, err := wrong.Operate.Drain(t.Context(), account.Operator(), leader); err != nil {
		t.Fatal(err)
	}
	wrong.Wait("the reasons", func() error {
		if said := strings.Join(wrong.Ready().Reasons, "; "); said != "this node is being drained; the clock of this node is 2h0m0s ahead of that of most nodes" {
			return errors.New(said)
		}
		return nil
	})

	before := time.Now()
	made, err := f.Nodes[0].Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	key := f.Nodes[0].View().Key(made.Info.ID)
	if off := key.Created.Sub(before); off.Abs() > time.Minute {
		t.Errorf("the key was made %v from now", off)
	}
}

// A node that starts alone after a long time may have missed that a key was revoked. It is not
// ready and accepts no key until it hears the others.
func TestIsolatedNode_isNotReady(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	f := nodetest.StartFleet(t, 3, nodetest.Config{Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	f.Nodes[0].Wait("three voters", threeVoters(f.Nodes[0]))
	made, err := f.Nodes[0].Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	last := f.Nodes[2]
	last.Wait("the key", func() error { return viewerIs(t, last, made, true) })

	for i := range f.Nodes {
		f.Crash(i)
	}
	ahead.Store(int64(11 * time.Minute))
	last.Launch()
	last.Wait("the reason", func() error {
		if r := last.Ready(); r.Ready || !strings.Contains(strings.Join(r.Reasons, " "), account.AgeVariable) {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if err := last.Keys.Current(); !errors.Is(err, call.ErrStale) {
		t.Errorf("what credentials are believed by: %v", err)
	}

	f.Nodes[0].Launch()
	f.Nodes[1].Launch()
	last.Wait("the others", func() error {
		if r := last.Ready(); !r.Ready {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	last.Wait("the key again", func() error { return viewerIs(t, last, made, true) })
}

package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

// Somebody sets the clocks of the machines back by an hour, after copies were
// made: the next ones do not wait for that hour to come again.
func TestCopiesGoOnWhenTheClockIsSetBack(t *testing.T) {
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
		if _, err := f.Nodes[0].Reindex(t.Context(), account.Operator(), operate.ReindexRequest{ID: 1}); err != nil {
			t.Fatal(err)
		}
		copied(word)
	}
}

// A node that starts alone after a long time may have missed that a key was
// revoked: it is not ready, believes none, and is what it was once it hears the others.
func TestANodeThatHearsNobodyIsNotReady(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	f := nodetest.StartFleet(t, 3, nodetest.Config{Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	f.Nodes[0].Wait("three voters", threeVoters(f.Nodes[0]))
	made, err := f.Nodes[0].CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "ci"})
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
	if err := last.Current(); !errors.Is(err, call.ErrStale) {
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

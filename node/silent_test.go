package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// holders waits until two of three nodes have all of the only repository. It returns these two,
// beginning with the one that indexed it if possible, and the third.
func holders(t *testing.T, f *nodetest.Fleet) (first, second, without int) {
	t.Helper()
	at := f.Nodes[0]
	at.WaitIndexed(1)
	at.Wait("two copies", even(t, at, 1))

	// If it was indexed before all nodes joined, its place may be on the other two. Then all
	// three have it for a moment.
	var on []string
	at.Wait("the mirror to be on two nodes", func() error {
		on = at.View().Holders(catalog.MirrorKey(1))
		if len(on) != 2 {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	by := at.View().Job(catalog.JobIndex, catalog.RepoSubject(1)).Node
	if !slices.Contains(on, by) {
		by = on[0]
	}

	for i, n := range f.Nodes {
		switch {
		case n.ID() == by:
			first = i
		case slices.Contains(on, n.ID()):
			second = i
		default:
			without = i
		}
	}

	// The third node hears of it later than node 0, and would only know one holder if the leader
	// were silenced before.
	f.Nodes[without].Wait("both holders", func() error {
		if known := f.Nodes[without].View().Holders(catalog.MirrorKey(1)); len(known) != 2 {
			return fmt.Errorf("it knows of %q", known)
		}
		return nil
	})
	return first, second, without
}

// reads returns one read of each kind at a node.
func reads(n *nodetest.Node) map[string]func(ctx context.Context) error {
	const repo = "local/app"
	v := catalog.Operator()
	return map[string]func(ctx context.Context) error{
		"read_file": func(ctx context.Context) error {
			_, err := n.Browse.ReadFile(ctx, v, browse.ReadFileRequest{Repo: repo, Ref: "HEAD", Path: "main.go"})
			return err
		},
		"list_tree": func(ctx context.Context) error {
			_, err := n.Browse.ListTree(ctx, v, browse.ListTreeRequest{Repo: repo, Ref: "HEAD", Depth: 1, MaxEntries: 10})
			return err
		},
		"source": func(ctx context.Context) error {
			_, err := n.Browse.Source(ctx, v, browse.SourceRequest{Repo: repo, Ref: "HEAD", Path: "main.go"})
			return err
		},
		"blame": func(ctx context.Context) error {
			_, err := n.Browse.Blame(ctx, v, browse.BlameRequest{Repo: repo, Ref: "HEAD", Path: "main.go"})
			return err
		},
		"commits": func(ctx context.Context) error {
			_, err := n.Browse.Commits(ctx, v, browse.CommitsRequest{Repo: repo, Ref: "HEAD"})
			return err
		},
	}
}

// Gossip has not noticed yet that a holder is gone or its answers are lost. The other holder
// answers.
func TestSilentNode_readsContinueAtAnotherHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main\n"})
	unnoticed := func(o *node.Options) { o.Reach = func(string, string) bool { return true } }
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: unpolled(dir), Edit: unnoticed})
	first, second, asked := holders(t, f)

	// With one of two voters missing nothing can be decided, and the other holder would wait.
	f.Nodes[asked].Wait("three voters", threeVoters(f.Nodes[asked]))

	for name, cut := range map[string]func(silent int){
		"is gone":           f.Isolate,
		"hears nothing":     func(silent int) { f.CutOneWay(asked, silent) },
		"gets nothing back": func(silent int) { f.CutOneWay(silent, asked) },
	} {
		for _, silent := range []int{first, second} {
			cut(silent)
			for round := range 4 {
				for kind, read := range reads(f.Nodes[asked]) {
					if took, err := timed(t, read); err != nil || took > 10*time.Second {
						t.Fatalf("node %d of %d %s: %s number %d takes %v: %v", silent, asked, name, kind, round, took, err)
					}
				}
			}
			f.Heal()
		}
	}
}

// timed returns how long a read takes, and its error.
func timed(t *testing.T, read func(ctx context.Context) error) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	err := read(t.Context())
	return time.Since(began), err
}

// A node that has just been cut off answers within two seconds with what it has, and tells a load
// balancer that it hears nobody.
func TestCutOffNode_answersAtOnceWithWhatItHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main // kraken\n"})
	unnoticed := func(o *node.Options) { o.Reach = func(string, string) bool { return true } }
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: unpolled(dir), Edit: unnoticed})
	_, _, i := holders(t, f)
	asked := f.Nodes[i]
	complete(t, asked, "kraken")

	f.Isolate(i)
	for n := range 3 {
		began := time.Now()
		r := asked.Results("kraken")
		if took := time.Since(began); took > 2*time.Second || r.Coverage.Exhaustive() {
			t.Errorf("search %d takes %v and is exhaustive: %t", n, took, r.Coverage.Exhaustive())
		}
	}
	for kind, read := range reads(asked) {
		if took, err := timed(t, read); took > 2*time.Second || !errors.Is(err, call.ErrUnavailable) {
			t.Errorf("%s takes %v: %v", kind, took, err)
		}
	}
	asked.Wait("to say that it hears nobody", func() error {
		if r := asked.Ready(); !strings.Contains(strings.Join(r.Reasons, " "), "hears none of the others") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})

	f.Heal()
	asked.Wait("all of it", func() error {
		if r := asked.Results("kraken"); !r.Coverage.Exhaustive() || !asked.Ready().Ready {
			return fmt.Errorf("%+v %+v", r.Cluster, asked.Ready())
		}
		return nil
	})
	for kind, read := range reads(asked) {
		if _, err := timed(t, read); err != nil {
			t.Errorf("%s fails after the cut: %v", kind, err)
		}
	}
}

// Gossip loses every message but connections work: each node calls the others dead, and none is.
func TestGossipLoss_nodesStillAnswerEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main // kraken\n"})
	var deaf atomic.Bool
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		o.Reach = func(string, string) bool { return !deaf.Load() }
	}})
	_, _, i := holders(t, f)
	asked := f.Nodes[i]

	deaf.Store(true)
	asked.Wait("the others to be called dead", func() error {
		for _, m := range asked.Status().Members {
			if m.ID != asked.ID() && m.Health != "dead" {
				return fmt.Errorf("%s counts as %s", m.ID, m.Health)
			}
		}
		return nil
	})

	for range 3 {
		complete(t, asked, "kraken")
		for kind, read := range reads(asked) {
			if _, err := timed(t, read); err != nil {
				t.Errorf("%s fails: %v", kind, err)
			}
		}
	}
	if len(asked.Find("kraken")) != 1 {
		t.Error("the file is not found")
	}
}

package node_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// says is the condition that the status of a node begins with a sentence that has some words,
// or has no word of them, and warns of the same.
func says(n *nodetest.Node, words string, said bool) func() error {
	return func() error {
		s := n.Status()
		warned := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, words) })
		if strings.Contains(s.Verdict.Sentence, words) != said || warned != said || said && s.Verdict.State != node.VerdictWeak {
			return fmt.Errorf("%+v %q", s.Verdict, s.Warnings)
		}
		return nil
	}
}

// A node says that another one still lacks the new cluster key, or accepts the old one.
func TestStatus_namesNodesThatLackTheNewClusterKey(t *testing.T) {
	t.Parallel()
	f := nodetest.StartFleet(t, 2, nodetest.Config{})
	a, b := f.Nodes[0], f.Nodes[1]
	const words = "the change of the cluster key is not finished"
	a.Wait("no word of the key", says(a, words, false))

	key := wire.NewKey()
	b.WriteKey(f.Key + "\n" + key.Text())
	a.Wait("word of the second key", says(a, words, true))
	a.WriteKey(f.Key + "\n" + key.Text())
	a.Wait("both with two keys", says(a, words, true))
	for _, n := range f.Nodes {
		n.WriteKey(key.Text() + "\n" + f.Key)
	}
	a.Wait("both to use the new key", func() error {
		if all := strings.Join(a.Status().Warnings, " "); strings.Count(all, key.Fingerprint()+" and ") != 1 || strings.Count(all, " and "+key.Fingerprint()) != 0 {
			return errors.New(all)
		}
		return nil
	})
	for _, n := range f.Nodes {
		n.WriteKey(key.Text())
	}
	a.Wait("the end of the change", says(a, words, false))
}

// Every node says that the newest back-up is old, whichever made it, also after a restart.
func TestStatus_warnsOfAnOldBackupOnEveryNode(t *testing.T) {
	t.Parallel()
	f := nodetest.StartFleet(t, 2, nodetest.Config{Edit: func(o *node.Options) { o.BackupAge = time.Nanosecond }})
	a, b := f.Nodes[0], f.Nodes[1]
	const words = "the newest back-up of the catalog is 0 hours old"
	a.Wait("no word of a back-up", says(a, words, false))
	if err := b.Operate.Snapshot(t.Context(), account.Operator(), io.Discard); err != nil {
		t.Fatal(err)
	}
	a.Wait("word of the back-up", says(a, words, true))
	b.Stop()
	b.Start()
	b.Wait("word of its own back-up", says(b, words, true))
}

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRestoredCluster_oldNodesStopAnswering(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	old := f.add(1)
	until(t, "the first node stands", func() bool { return old.Ready() == nil && old.founded() })
	second := f.add(1)
	f.settled(1, old, second)
	second.propose(set("before", "v"))
	before := old.self.cluster()

	// The only voter is lost, and the other node recovers as a new cluster.
	old.stop()
	second.stop()
	recovered, err := Recover(f.dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	f.n = nil
	again := start(t, f.with(f.dirs[1], 1))
	f.n = append(f.n, again)
	if got := again.View().Former(); len(got) != 1 || got[0] != before {
		t.Errorf("cluster %s was made of %v, want %s", recovered.Cluster, got, before)
	}
	again.propose(set("after", "v"))

	// The lost node returns with its data.
	back := start(t, f.with(f.dirs[0], 1))
	until(t, "the node of the old cluster knows that it is outlived", func() bool {
		err := back.Ready()
		return err != nil && strings.Contains(err.Error(), "move its data directory away") && strings.Contains(err.Error(), shortID(recovered.Cluster))
	})
	began := time.Now()
	if _, err := back.Propose(context.Background(), set("lost", "v")); !errors.Is(err, ErrNoLeader) || !strings.Contains(err.Error(), "given up") {
		t.Errorf("a write to the old cluster: %v", err)
	}
	if time.Since(began) > patience/2 {
		t.Errorf("it was refused after %v only", time.Since(began))
	}

	// It keeps no node out of the new cluster, and can join it with an empty directory.
	f.n = append(f.n, back)
	third := f.add(1)
	until(t, "a new node joins beside it", func() bool { return third.View().ClusterID() == recovered.Cluster && third.Ready() == nil })
	if err := again.Ready(); err != nil {
		t.Errorf("the new cluster: %v", err)
	}
	again.propose(set("still", "v"))
}

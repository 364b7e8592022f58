package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// announced waits until a node is in its own catalog.
func announced(t *testing.T, n *testNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		changed := n.Changed()
		if n.View().Member(n.Self()) != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("the node does not announce itself")
		}
	}
}

func TestRestoreFromSnapshot_makesANewCluster(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	n := start(t, options(t, from))
	n.propose(&catalog.CreateKey{Key: catalog.Key{ID: "k", Name: "ci", Hash: bytes.Repeat([]byte{1}, 32), Role: catalog.RoleOwner}},
		&catalog.PutSession{Session: catalog.Session{ID: "s", Key: "k", Hash: bytes.Repeat([]byte{3}, 32), Idle: time.Hour, Expires: time.Now().Add(time.Hour)}})
	old := n.self.cluster()
	if _, err := n.Secret(context.Background(), "hmac"); err != nil {
		t.Fatal(err)
	}
	secret, err := n.Secret(context.Background(), "hmac")
	if err != nil {
		t.Fatal(err)
	}
	announced(t, n)
	var saved bytes.Buffer
	if err := n.Snapshot(context.Background(), &saved); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(from, "cluster.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(to, "cluster.key")
	refused := func(dir, want string, snapshot io.Reader) {
		t.Helper()
		if _, err := Restore(dir, keyFile, snapshot); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	refused(to, "needs the cluster key", bytes.NewReader(saved.Bytes()))
	if err := os.WriteFile(keyFile, []byte(wire.NewKey().Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(to, "is not the cluster key", bytes.NewReader(saved.Bytes()))
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(to, "damaged", bytes.NewReader(saved.Bytes()[:saved.Len()/2]))
	refused(from, "holds a node already", bytes.NewReader(saved.Bytes()))
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("what was refused has left %v, %v", left, err)
	}

	r, err := Restore(to, keyFile, bytes.NewReader(saved.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if r.Before != old || r.Cluster == old || len(r.Removed) != 1 || r.Removed[0] != n.Self() || r.Node == n.Self() {
		t.Errorf("%+v", r)
	}
	if r.Sessions != 1 || r.Accounts != 0 || !slices.Equal(r.Keys, []string{`k "ci" of nobody`}) {
		t.Errorf("what ended and what is in force again: %+v", r)
	}
	again := start(t, options(t, to))
	again.propose(&catalog.CreateKey{Key: catalog.Key{ID: "k2", Name: "k2", Hash: bytes.Repeat([]byte{2}, 32), Role: catalog.RoleOwner}})
	if again.View().Key("k") == nil || again.View().Key("k2") == nil {
		t.Error("keys are gone")
	}
	if again.View().Session("s") != nil {
		t.Error("a session is there again")
	}
	if s, err := again.Secret(context.Background(), "hmac"); err != nil || !bytes.Equal(s, secret) {
		t.Errorf("secret: %v", err)
	}
	announced(t, again)
	if again.View().ClusterID() != r.Cluster || again.Self() != r.Node {
		t.Errorf("cluster %s, node %s, want %+v", again.View().ClusterID(), again.Self(), r)
	}
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	refused(to, "holds a node already", bytes.NewReader(saved.Bytes()))
}

// loseMajority adds two voters that do not exist to the log of a stopped node.
func loseMajority(t *testing.T, dir string) {
	t.Helper()
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	id, err := h.loadIdentity()
	if err != nil {
		t.Fatal(err)
	}
	store, err := openStore(h.raft, offlineWatchdog())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	snaps, err := raft.NewFileSnapshotStore(h.raft, snapshotsKept, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(id.NodeID), newRaftLog(discardLog())
	_, trans := raft.NewInmemTransport("x")
	three := onlyVoter(id)
	for _, other := range []string{"other1", "other2"} {
		three.Servers = append(three.Servers, raft.Server{ID: raft.ServerID(other), Address: raft.ServerAddress(other)})
	}
	m := newMachine(discardLog(), catalog.ThisBuild(), func(error) {}, func(uint64) {})
	if err := raft.RecoverCluster(conf, m, store, store, snaps, trans, three); err != nil {
		t.Fatal(err)
	}
}

func TestRecover_startsAClusterAfterLosingTheMajority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Recover(dir); err == nil || !strings.Contains(err.Error(), "not that of a member") {
		t.Errorf("an empty directory: %v", err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := Recover(missing); err == nil || !strings.Contains(err.Error(), "there is no data directory") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a directory was made that is nobody's")
	}
	n := start(t, options(t, dir))
	n.propose(set("k", "v"), &catalog.PutMember{Member: catalog.Member{ID: "other1", Epoch: catalog.NewEpoch(1, 1)}})
	announced(t, n)
	old := n.self.cluster()
	if _, err := Recover(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a running node: %v", err)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	loseMajority(t, dir)
	r, err := Recover(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Node != n.Self() || r.Before != old || r.Cluster == old || len(r.Removed) != 1 || r.Removed[0] != "other1" {
		t.Errorf("%+v", r)
	}
	n = start(t, options(t, dir))
	n.propose(set("k2", "v2"))
	if got := secretOf(n.View(), "k") + secretOf(n.View(), "k2"); got != "vv2" {
		t.Errorf("k and k2 are %q", got)
	}
	if m := n.View().Member("other1"); m == nil || m.State != catalog.MemberRemoved || n.View().ClusterID() != r.Cluster {
		t.Errorf("member %+v of cluster %s", m, n.View().ClusterID())
	}
}

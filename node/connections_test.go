package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// An owner can list a connection at any time, and gets the result.
func TestListConnection_isRunByAnOwnerAtAnyTime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(root, "one"), map[string]string{"a.txt": "a"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"settings": {"resyncConnectionPollingIntervalMs": 20}, "connections": {"main": {"type": "git", "url": "file://%s/*"}}}`, root)})
	n.WaitIndexed(1)

	nodetest.NewRepo(t, filepath.Join(root, "two"), map[string]string{"b.txt": "b"})
	before, err := n.Operate.SyncConnection(t.Context(), account.Operator(), "main")
	if err != nil || before.Repos != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	n.WaitIndexed(2)
	all, err := n.Operate.Connections(t.Context(), account.Operator())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if c := all[0]; c.State != "synced" || c.Repos != 2 || !c.EndedAt.After(before.EndedAt) || c.NextAt.Sub(c.EndedAt).Hours() != 24 {
		t.Errorf("after the listing: %+v", c)
	}
	one, err := n.Operate.Connection(t.Context(), account.Operator(), "main")
	if err != nil || !one.NextAt.Equal(all[0].NextAt) || len(one.Syncs) == 0 || *one.Syncs[0].Repos != 2 {
		t.Errorf("the connection by its name: %+v, %v", one, err)
	}

	if _, err := n.Operate.SyncConnection(t.Context(), account.Operator(), "other"); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("a connection that is not there: %v", err)
	}
	_, err = n.Operate.AcceptListing(t.Context(), account.Operator(), "main")
	if !errors.Is(err, call.ErrUnable) || !strings.Contains(err.Error(), "nothing is held") {
		t.Errorf("accepting where nothing is held: %v", err)
	}
}

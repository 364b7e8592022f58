package cluster

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// later returns an entry of a later version: a command in it has a field that this version does not
// know.
func later(t *testing.T) []byte {
	t.Helper()
	data, err := (&catalog.Entry{Commands: []catalog.Command{&catalog.Noop{}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}

	// The last byte is the body of the command: no fields. Give it one field, with the value 5.
	data[len(data)-2], data[len(data)-1] = 2, 1
	return append(data, 5)
}

// A leader does not commit an entry of a later version: every node of its own version would have to
// stop. The sender gets an error.
func TestServePropose_refusesAnEntryOfALaterVersion(t *testing.T) {
	t.Parallel()
	n := start(t, options(t, t.TempDir()))
	if _, err := n.proposer.servePropose(t.Context(), Peer{}, later(t)); err == nil || !strings.Contains(err.Error(), "written by a newer version") {
		t.Errorf("the entry is refused with %v", err)
	}

	// If it had been committed, nothing after it could be applied.
	n.propose(set("a", "v"))
	if got := secretOf(n.View(), "a"); got != "v" {
		t.Errorf("what is written after it is %q", got)
	}
}

// A node stops at a committed entry of a later version. It applies no part of it, and no later
// entry.
func TestNode_stopsAtAnEntryOfALaterVersion(t *testing.T) {
	t.Parallel()
	var stopped []error
	m := newMachine(discardLog(), catalog.ThisBuild(), func(err error) { stopped = append(stopped, err) }, func(uint64) {})
	known, err := (&catalog.Entry{Commands: []catalog.Command{&catalog.Noop{}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}

	at := func(index uint64, data []byte) *raft.Log {
		return &raft.Log{Index: index, Type: raft.LogCommand, Data: data}
	}
	m.ApplyBatch([]*raft.Log{at(1, known)})
	hash := m.view.Load().Hash()
	m.ApplyBatch([]*raft.Log{at(2, later(t)), at(3, known)})

	if len(stopped) != 1 || !strings.Contains(stopped[0].Error(), "written by a newer version") {
		t.Errorf("it stopped with %v", stopped)
	}
	if v := m.view.Load(); v.Index() != 1 || v.Hash() != hash {
		t.Errorf("the catalog is at %d, want 1 as it was", v.Index())
	}
}

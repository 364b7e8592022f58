package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// An entry is sent again because the answer was lost. The result has the index of the first try,
// which is the fence of what the entry wrote.
func TestPropose_retryReturnsTheFirstIndex(t *testing.T) {
	t.Parallel()
	n := start(t, options(t, t.TempDir()))
	n.propose(set("ready", "now"))

	e := catalog.Entry{
		Node:    n.Self(),
		Request: [16]byte{7},
		Commands: []catalog.Command{&catalog.BeginTurn{
			Thread: "t1", New: true, Owner: "k:1", Title: []byte("sealed"), Node: n.Self(), Lost: catalog.ThreadTurn{File: strings.Repeat("a", 64)},
		}},
	}
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, _, err := n.proposer.proposeUntilCommitted(ctx, data)
	if err != nil {
		t.Fatal(err)
	}
	n.propose(set("something", "between"))

	again, results, err := n.proposer.proposeUntilCommitted(ctx, data)
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Fatalf("%+v, %v", results, err)
	}
	if fence := n.View().Thread("t1").Run.Fence; again != first || fence != first {
		t.Errorf("the first try has index %d, the second %d, and the turn the fence %d", first, again, fence)
	}
}

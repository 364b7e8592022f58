package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Every node returns the events of all nodes.
func TestEvents_ofAllNodesAreReturnedByAnyNode(t *testing.T) {
	t.Parallel()
	f := nodetest.StartFleet(t, 3, nodetest.Config{})
	first, leaving := f.Nodes[0], f.Nodes[2].ID()
	told := func(by *nodetest.Node, kind string) (list *chronicle.EventsResponse) {
		t.Helper()
		by.Wait("the event "+kind, func() error {
			r, err := by.Chronicle.Events(t.Context(), account.Operator(), chronicle.EventsRequest{})
			if err != nil {
				return err
			}
			n := 0
			for _, e := range r.Events {
				if e.Kind == kind && e.Subject == leaving {
					n++
				}
			}
			if n != 1 || r.Since.IsZero() || !slices.IsSortedFunc(r.Events, func(a, b chronicle.Event) int { return b.At.Compare(a.At) }) {
				return fmt.Errorf("it is told %d times: %+v", n, r)
			}
			list = r
			return nil
		})
		return list
	}
	for _, n := range f.Nodes {
		n.Wait("the first look at the cluster", func() error {
			if !n.KeepsEvents() {
				return errors.New("not yet")
			}
			return nil
		})
	}

	// A busy machine may be without a leader for longer than a write waits.
	first.Wait("a leader that takes the drain", func() error {
		_, err := first.Operate.Drain(t.Context(), account.Operator(), leaving)
		return err
	})
	for _, n := range f.Nodes {
		told(n, "draining")
	}

	// A client that continues at another node gets new events once. Its list has the drain
	// already: a node that has not noticed the drain only returns it if another node answers in
	// time.
	before := told(first, "draining")
	if before.Next == "" {
		t.Fatalf("%+v", before)
	}
	f.Nodes[2].Stop()
	told(first, "unreachable")
	f.Nodes[1].Wait("what happened since", func() error {
		since, err := f.Nodes[1].Chronicle.Events(t.Context(), account.Operator(), chronicle.EventsRequest{After: before.Next})
		if err != nil {
			return err
		}
		if kinds := kindsOf(since.Events, leaving); since.Missed || !slices.Equal(kinds, []string{"unreachable"}) {
			return fmt.Errorf("%q of the node, of %+v", kinds, since)
		}
		return nil
	})
	f.Nodes[1].Stop()
	f.Nodes[1].Start()
	told(f.Nodes[1], "draining")
	if _, err := first.Chronicle.Events(t.Context(), account.Operator(), chronicle.EventsRequest{Limit: 1001}); err == nil {
		t.Error("a limit without a bound is taken")
	}
}

// kindsOf returns the kinds of a node's events. It leaves out votes, which may change at any
// time.
func kindsOf(events []chronicle.Event, node string) (kinds []string) {
	for _, e := range events {
		if e.Subject == node && e.Kind != "voter" {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

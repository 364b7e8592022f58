package cluster

import (
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// An operator moves the lead, from any node to any voter that stays.
func TestLeadership_movesToAnyRemainingVoter(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 4 {
		f.add(3)
	}
	f.settled(3, f.n...)
	by := f.n[0]
	var voters []string
	spare := ""
	for _, m := range by.Members() {
		if m.Voter {
			voters = append(voters, m.ID)
		} else {
			spare = m.ID
		}
	}

	for _, id := range append(slices.Clone(voters), voters[0], voters[0]) {
		if err := by.Lead(t.Context(), id); err != nil || by.Leader() != id {
			t.Fatalf("%s is to lead: %v; %q leads", id, err, by.Leader())
		}
	}
	if _, ok := catalog.Refused(by.Lead(t.Context(), spare)); !ok {
		t.Error("a node without a vote may lead")
	}

	// A draining leader hands over. A stopping leader does not hand over to a draining node.
	leader := f.leader()
	if err := by.Drain(t.Context(), leader.Self()); err != nil {
		t.Fatal(err)
	}
	until(t, "another node leads", func() bool { return by.Leader() != "" && by.Leader() != leader.Self() })
	if _, ok := catalog.Refused(by.Lead(t.Context(), leader.Self())); !ok {
		t.Error("a node that drains may lead")
	}
}

// A stopping leader hands over to a voter that stays.
func TestLeadership_isHandedOverWhenTheLeaderStops(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	f.settled(3, f.n...)
	if err := f.n[0].Lead(t.Context(), f.n[0].Self()); err != nil {
		t.Fatal(err)
	}
	if err := f.n[0].Drain(t.Context(), f.n[1].Self()); err != nil {
		t.Fatal(err)
	}
	f.n[0].stop()
	if got := f.n[2].Leader(); got != f.n[2].Self() {
		t.Errorf("after the stop %q leads, want the node that stays", got)
	}
}

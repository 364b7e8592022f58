package cluster

import (
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Every node has the audit event of an acknowledged change, so the node that took the request may
// be lost.
func TestAuditEvent_survivesTheNodeThatTookTheRequest(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	f.settled(3, f.n...)
	leader := f.leader()
	who := catalog.Actor{Type: catalog.ActorKey, ID: "k1", Name: "ci", Address: "192.0.2.7"}
	owner := catalog.User{ID: "u1", Email: "ann@example.com", Role: catalog.RoleOwner, State: catalog.AccountActive}
	_, results, err := leader.ProposeAll(catalog.WithActor(t.Context(), who), &catalog.PutAccount{Account: owner})
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Fatalf("results %+v, %v", results, err)
	}
	leader.stop()

	for _, n := range others(f.n, leader) {
		until(t, "a node that stays has the event", func() bool {
			for e := range n.View().EventsBefore(0) {
				if e.Action == "user.created" && e.Actor == who && e.Target == "u1" && e.Node == leader.Self() {
					return true
				}
			}
			return false
		})
	}
}

// A node names itself as the actor of what it does on its own. It leaves no event if the audit is
// off.
func TestAuditEvent_namesANodeOrAPersonAsActor(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		o := options(t, t.TempDir())
		o.Audit = func() Audit { return Audit{Off: off} }
		n := start(t, o)
		n.propose(&catalog.PutAccount{Account: catalog.User{ID: "u1", Email: "ann@example.com", Role: catalog.RoleOwner, State: catalog.AccountActive}})
		n.propose(set("x", "v"))

		var got []string
		for e := range n.View().EventsBefore(0) {
			got = append(got, e.Action+" by "+e.Actor.Type)
		}
		want := []string{"user.created by system"}
		if off {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("audit off %t: %v, want %v", off, got, want)
		}
	}
}

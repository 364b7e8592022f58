package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Every node returns the audit events of reads and changes at all nodes. If a node does not
// answer, the result may be incomplete and says so. Refusals write nothing to the raft log.
func TestAudit_answersFromAllNodes(t *testing.T) {
	t.Parallel()
	f := nodetest.StartFleet(t, 3, nodetest.Config{})
	if _, err := f.Nodes[0].People.CreateUser(catalog.WithActor(t.Context(), catalog.Actor{Type: catalog.ActorOperator}), account.Operator(), account.CreateUserRequest{Email: "ann@example.com"}); err != nil {
		t.Fatal(err)
	}
	for i, n := range f.Nodes {
		for range 5 {
			n.Chronicle.NoteAccess(chronicle.Access{Action: "code.read", Actor: catalog.Actor{Type: catalog.ActorUser, ID: "u1"}, Target: fmt.Sprint(i), Status: 200})
			n.Chronicle.NoteAccess(chronicle.Access{Action: "login.failed", Refusal: true, Actor: catalog.Actor{Type: catalog.ActorGuest, Address: "192.0.2.7"}, Status: 401})
		}
	}

	// A node applies what the leader committed a moment after it starts.
	for _, n := range f.Nodes {
		n.Wait("both changes", func() error {
			changes, err := n.Chronicle.Audit(t.Context(), account.Operator(), chronicle.AuditRequest{Kind: chronicle.Changes})
			if err != nil || changes.Total != 2 || changes.Lines[0].Action != "user.created" {
				return fmt.Errorf("%+v, %w", changes, err)
			}
			return nil
		})
		n.Wait("all that was read and refused", func() error { return allIsTold(t, n) })
		if info, err := os.Stat(filepath.Join(n.Dir, "audit")); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder: %v, %v", info, err)
		}
	}

	gone := f.Nodes[2].ID()
	f.Crash(2)
	f.Nodes[0].Wait("the crash to be told", func() error {
		r, err := f.Nodes[0].Chronicle.Audit(t.Context(), account.Operator(), chronicle.AuditRequest{Kind: chronicle.Accesses, Action: "code"})
		if err != nil || len(r.Missing) != 1 || r.Missing[0].Node != gone || r.Total != 10 {
			return fmt.Errorf("%+v, %w", r, err)
		}
		return nil
	})
}

// allIsTold reads the audit of a node page by page.
func allIsTold(t *testing.T, n *nodetest.Node) error {
	seen := map[string]int{}
	req := chronicle.AuditRequest{PerPage: 7}
	for {
		r, err := n.Chronicle.Audit(t.Context(), account.Operator(), req)
		if err != nil || len(r.Missing) > 0 {
			return fmt.Errorf("%+v, %w", r, err)
		}
		if len(r.Lines) == 0 {
			break
		}

		for _, l := range r.Lines {
			seen[l.Action+" "+l.TargetID]++
		}
		req.After = &r.Lines[len(r.Lines)-1]
	}

	// Two changes come in addition to these.
	if seen["code.read 0"] != 5 || seen["code.read 1"] != 5 || seen["code.read 2"] != 5 || seen["login.failed "] != 15 || len(seen) != 6 {
		return fmt.Errorf("it tells %v", seen)
	}
	return nil
}

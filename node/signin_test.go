package node_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// sessionRole returns the role of a token at a node, RoleNone if it is refused.
func sessionRole(t *testing.T, n *nodetest.Node, token string) catalog.Role {
	t.Helper()
	var role catalog.Role

	// A node that lags behind asks the leader, or reports that it cannot.
	n.Wait("an answer about the session", func() error {
		v, err := n.Sessions.SessionViewer(context.Background(), token)
		if err != nil && !errors.Is(err, call.ErrUnauthenticated) {
			return err
		}
		role = v.Role
		return nil
	})
	return role
}

func TestSession_isAcceptedOnEveryNodeUntilItEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := nodetest.StartFleet(t, 3, nodetest.Config{}).Nodes
	f[0].Wait("three voters", threeVoters(f[0]))
	by := account.Operator()
	ann, key := user(t, f[0], "ann@example.com", catalog.RoleMember)
	begin := func(n *nodetest.Node) string {
		t.Helper()
		begun, err := n.Sessions.Begin(ctx, ann.ID, account.SignIn{Method: "password", Agent: "Browser\n1"})
		if err != nil {
			t.Fatal(err)
		}
		return begun.Token
	}

	// At once, also at nodes that have not heard of it yet.
	token := begin(f[0])
	for i, n := range f {
		if got := sessionRole(t, n, token); got != catalog.RoleMember {
			t.Errorf("node %d takes the session for the role %v", i, got)
		}
	}
	if got := sessionRole(t, f[1], token[:63]+"g"); got != catalog.RoleNone {
		t.Errorf("a token of nobody has the role %v", got)
	}

	// A session that began with a key ends with the key.
	byKey, err := f[1].Sessions.BeginWithKey(ctx, key, account.SignIn{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := f[2].Sessions.SessionViewer(ctx, byKey.Token)
	if err != nil || v.KeyID == "" || v.Account != ann.ID {
		t.Errorf("the session of a key is %+v, %v", v, err)
	}
	holder, err := account.AsHolder(v)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := f[0].Sessions.SessionsOf(ctx, holder, "me"); err != nil || len(list) != 2 || list[1].Agent != "Browser1" && list[0].Agent != "Browser1" {
		t.Errorf("own sessions: %+v, %v", list, err)
	}
	if _, err := f[0].Keys.RevokeKey(ctx, by, v.KeyID); err != nil {
		t.Fatal(err)
	}
	for i, n := range f {
		if got := sessionRole(t, n, byKey.Token); got != catalog.RoleNone {
			t.Errorf("node %d takes the session of a revoked key", i)
		}
	}

	// End all other sessions, then suspend the account.
	other := begin(f[2])
	here, err := f[1].Sessions.SessionViewer(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	holder, _ = account.AsHolder(here)
	if n, err := f[1].Sessions.EndSessions(ctx, holder, "me", "others"); err != nil || n != 1 {
		t.Errorf("%d other sessions ended, %v", n, err)
	}
	for i, n := range f {
		if sessionRole(t, n, other) != catalog.RoleNone || sessionRole(t, n, token) != catalog.RoleMember {
			t.Errorf("node %d has other sessions", i)
		}
	}
	if _, err := f[0].People.ChangeUser(ctx, by, account.ChangeUserRequest{User: ann.ID, State: catalog.AccountSuspended}); err != nil {
		t.Fatal(err)
	}
	for i, n := range f {
		if got := sessionRole(t, n, token); got != catalog.RoleNone {
			t.Errorf("node %d takes the session of somebody suspended", i)
		}
	}
	if _, err := f[0].Sessions.Begin(ctx, ann.ID, account.SignIn{}); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("somebody suspended signs in: %v", err)
	}
}

func TestSessions_ofOthersAreNotEndedByAMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	ann, _ := user(t, n, "ann@example.com", catalog.RoleMember)
	bob, _ := user(t, n, "bob@example.com", catalog.RoleMember)
	if _, err := n.Sessions.Begin(ctx, ann.ID, account.SignIn{}); err != nil {
		t.Fatal(err)
	}
	by, err := account.AsHolder(catalog.Viewer{Role: catalog.RoleMember, Account: bob.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Sessions.SessionsOf(ctx, by, ann.Email); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("a member sees sessions of another: %v", err)
	}
	if _, err := n.Sessions.EndSessions(ctx, by, ann.ID, ""); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("a member ends sessions of another: %v", err)
	}
	if ended, err := n.Sessions.EndSessions(ctx, account.Operator(), ann.ID, ""); err != nil || ended != 1 {
		t.Errorf("the operator ends %d, %v", ended, err)
	}
}

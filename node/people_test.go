package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// user makes an account and a key of it.
func user(t *testing.T, n *nodetest.Node, email string, role catalog.Role) (*account.UserInfo, string) {
	t.Helper()
	ctx := context.Background()
	u, err := n.People.CreateUser(ctx, account.Operator(), account.CreateUserRequest{Email: email, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	k, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "laptop", User: email, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return u, k.Key
}

func TestAPIKey_hasTheRoleOfItsAccount(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	by := account.Operator()
	_, first := user(t, n, "First@Example.com", catalog.RoleOwner)
	_, second := user(t, n, "second@example.com", catalog.RoleOwner)
	change := func(req account.ChangeUserRequest) error {
		_, err := n.People.ChangeUser(ctx, by, req)
		return err
	}
	role := func(key string) catalog.Role {
		v, err := n.Keys.Authenticate(ctx, key)
		if err != nil && !errors.Is(err, call.ErrUnauthenticated) {
			t.Fatal(err)
		}
		return v.Role
	}

	if role(first) != catalog.RoleOwner {
		t.Fatal("an owner's key of the role owner is none")
	}
	if err := change(account.ChangeUserRequest{User: "first@example.com", Role: catalog.RoleMember}); err != nil {
		t.Fatal(err)
	}
	if got := role(first); got != catalog.RoleMember {
		t.Errorf("the key of somebody who is an owner no more has the role %v", got)
	}

	// Changes that would leave no owner are refused.
	for what, err := range map[string]error{
		"demote":  change(account.ChangeUserRequest{User: "second@example.com", Role: catalog.RoleMember}),
		"suspend": change(account.ChangeUserRequest{User: "second@example.com", State: catalog.AccountSuspended}),
		"delete":  func() error { _, err := n.People.DeleteUser(ctx, by, "second@example.com"); return err }(),
	} {
		if !errors.Is(err, call.ErrUnable) || !strings.Contains(err.Error(), "last owner") {
			t.Errorf("%s the last owner: %v", what, err)
		}
	}
	if role(second) != catalog.RoleOwner {
		t.Error("the last owner is none any more")
	}

	if err := change(account.ChangeUserRequest{User: "first@example.com", State: catalog.AccountSuspended}); err != nil {
		t.Fatal(err)
	}
	if got := role(first); got != catalog.RoleNone {
		t.Errorf("the key of a suspended account has the role %v", got)
	}
	if err := change(account.ChangeUserRequest{User: "first@example.com", State: catalog.AccountActive}); err != nil {
		t.Fatal(err)
	}
	if got := role(first); got != catalog.RoleMember {
		t.Errorf("the key of an account that is active again has the role %v", got)
	}
	if _, err := n.People.DeleteUser(ctx, by, "first@example.com"); err != nil {
		t.Fatal(err)
	}
	if got := role(first); got != catalog.RoleNone {
		t.Errorf("the key of a deleted account has the role %v", got)
	}
}

func TestKeys_ofOthersAreNotManagedByAMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := nodetest.Start(t, nodetest.Config{})
	user(t, n, "ann@example.com", catalog.RoleMember)
	_, bob := user(t, n, "bob@example.com", catalog.RoleMember)
	v, err := n.Keys.Authenticate(ctx, bob)
	if err != nil {
		t.Fatal(err)
	}
	by, err := account.AsHolder(v)
	if err != nil {
		t.Fatal(err)
	}

	for what, req := range map[string]account.CreateKeyRequest{
		"a key of another":           {Name: "x", User: "ann@example.com"},
		"an owner's key":             {Name: "x", Role: catalog.RoleOwner},
		"a key for all repositories": {Name: "x", All: true},
	} {
		if _, err := n.Keys.CreateKey(ctx, by, req); !errors.Is(err, call.ErrForbidden) {
			t.Errorf("a member makes %s: %v", what, err)
		}
	}
	if _, err := n.Keys.CreateKey(ctx, by, account.CreateKeyRequest{Name: "0123abcd"}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("a name like an id: %v", err)
	}
	made, err := n.Keys.CreateKey(ctx, by, account.CreateKeyRequest{Name: "ci"})
	if err != nil || made.Info.User != "bob@example.com" {
		t.Fatalf("a member's own key: %+v, %v", made, err)
	}

	list, err := n.Keys.Keys(ctx, by, false)
	if err != nil || len(list) != 2 {
		t.Errorf("a member sees the keys %+v, %v; want 2", list, err)
	}
	all, _ := n.Keys.Keys(ctx, account.Operator(), false)
	for _, k := range all {
		if k.User != "ann@example.com" {
			continue
		}
		if _, err := n.Keys.RevokeKey(ctx, by, k.ID); !errors.Is(err, call.ErrNotFound) {
			t.Errorf("a member ends a key of another: %v", err)
		}
	}
	if _, err := n.Keys.RevokeKey(ctx, by, "laptop"); err != nil {
		t.Errorf("a member's key of a name that another has too: %v", err)
	}
	if _, err := account.AsHolder(catalog.Viewer{Role: catalog.RoleMember}); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("a key of nobody manages keys: %v", err)
	}
}

// The environment variable decides on anonymous access. An override of the file wins over it; the
// old setting counts if neither is set.
func TestAnonymousAccess_overrideWinsOverVariableOverSetting(t *testing.T) {
	t.Parallel()
	const variable = "FORCE_ENABLE_ANONYMOUS_ACCESS"
	n := nodetest.Start(t, nodetest.Config{File: `{}`})
	with := nodetest.Start(t, nodetest.Config{File: `{}`, Env: map[string]string{variable: "true"}})
	override := func(value, rest string) string {
		return `{"environmentOverrides": {"` + variable + `": {"type": "boolean", "value": ` + value + `}}` + rest + `}`
	}
	const setting = `"settings": {"enablePublicAccess": true}`
	for _, tt := range []struct {
		file          string
		without, with bool
	}{
		{`{}`, false, true},
		{override("false", ""), false, false},
		{override("true", ""), true, true},
		{"{" + setting + "}", true, true},
		{override("false", ", "+setting), false, false},
	} {
		for node, want := range map[*nodetest.Node]bool{n: tt.without, with: tt.with} {
			node.Configure(tt.file)
			node.Wait("the configuration", func() error {
				if node.AnonymousAccess() != want {
					return errors.New(tt.file)
				}
				return nil
			})
		}
	}
}

// A node with a setting for permissions is announced once. Its log has an entry for each change
// and no more.
func TestPermissionSetting_isAnnouncedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, value := range []string{"", "true", "false"} {
		n := nodetest.Start(t, nodetest.Config{File: `{}`, Env: map[string]string{"PERMISSION_SYNC_ENABLED": value}})
		want := map[string]string{"": "unset", "true": "on", "false": "off"}[value]
		n.Wait("the setting", func() error {
			if got := n.Status().Permissions.Sync.String(); got != want {
				return errors.New(got)
			}
			return nil
		})

		const changes, young = 40, 8 // a new cluster makes a few secrets
		before := n.Status().CatalogIndex
		for i := range changes {
			if _, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: fmt.Sprint("k", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if grew := n.Status().CatalogIndex - before; grew > changes+young {
			t.Errorf("%q: %d changes are %d entries", value, changes, grew)
		}
	}
}

package account

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
)

// The operator keeps access until an owner can sign in: an account that nobody can sign in to does
// not count.
func TestOperatorAccess_lastsUntilAnOwnerCanSignIn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	account := func(role catalog.Role, state catalog.AccountState) catalog.Command {
		return &catalog.PutAccount{Account: catalog.User{ID: "u1", Email: "ann@example.com", Role: role, State: state}}
	}
	key := func(role catalog.Role, of string, expires time.Time) catalog.Command {
		return &catalog.CreateKey{Key: catalog.Key{ID: "k1", Name: "k", Role: role, Account: of, Hash: make([]byte, 32), Expires: expires}}
	}
	owner := account(catalog.RoleOwner, catalog.AccountActive)
	password := &catalog.SetPassword{Account: "u1", Hash: "h"}
	provider := &catalog.LinkIdentity{Identity: catalog.Identity{Provider: "corp", Subject: "1", Account: "u1"}}

	for what, c := range map[string]struct {
		done []catalog.Command
		want bool
	}{
		"nobody":                       {nil, false},
		"an owner who cannot sign in":  {[]catalog.Command{owner}, false},
		"an owner with a password":     {[]catalog.Command{owner, password}, true},
		"an owner with a provider":     {[]catalog.Command{owner, provider}, true},
		"an owner with a key":          {[]catalog.Command{owner, key(catalog.RoleOwner, "u1", time.Time{})}, true},
		"an owner with a member's key": {[]catalog.Command{owner, key(catalog.RoleMember, "u1", time.Time{})}, false},
		"a member with a password":     {[]catalog.Command{account(catalog.RoleMember, catalog.AccountActive), password}, false},
		"an owner who waits":           {[]catalog.Command{account(catalog.RoleOwner, catalog.AccountPending), password}, false},
		"a key of nobody for an owner": {[]catalog.Command{key(catalog.RoleOwner, "", time.Time{})}, true},
		"one that has expired":         {[]catalog.Command{key(catalog.RoleOwner, "", now.Add(time.Hour))}, false},
		"a key of nobody for a member": {[]catalog.Command{key(catalog.RoleMember, "", time.Time{})}, false},
	} {
		w := clustertest.New(t, `{}`, 1)
		w.Do(c.done...)
		if got := HasOwner(w.View(), now.Add(2*time.Hour)); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}

package account

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// An operator may restrict keys to owners: creating, and using them. The settings also affect
// existing keys and sessions, and can be reversed.
func TestAPIKeys_canBeRestrictedToOwners(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	vars := map[string]string{}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	k := NewKeyring(l, lookup, l.time, slog.New(slog.DiscardHandler))
	sessions := NewSessions(k, lookup)
	ann, boss := l.person("ann@example.com", catalog.RoleMember), l.person("boss@example.com", catalog.RoleOwner)
	member := Person{catalog.Viewer{Role: catalog.RoleMember, Account: ann.ID, Name: ann.Email}}
	owner := Owner{catalog.Viewer{Role: catalog.RoleOwner, Account: boss.ID, Name: boss.Email}}
	create := func(by Holder, name string) (string, error) {
		made, err := k.CreateKey(t.Context(), by, CreateKeyRequest{Name: name})
		if err != nil {
			return "", err
		}
		return made.Key, nil
	}
	hers, err := create(member, "hers")
	if err != nil {
		t.Fatal(err)
	}
	his, err := create(owner, "his")
	if err != nil {
		t.Fatal(err)
	}
	nobodys, err := create(Operator(), "robot")
	if err != nil {
		t.Fatal(err)
	}
	begun, err := sessions.BeginWithKey(t.Context(), hers, SignIn{})
	if err != nil {
		t.Fatal(err)
	}

	vars["DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS"] = "true"
	if _, err := create(member, "another"); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("a member makes a key: %v", err)
	}
	if _, err := create(owner, "another"); err != nil {
		t.Errorf("an owner makes a key: %v", err)
	}
	if _, err := k.Authenticate(t.Context(), hers); err != nil {
		t.Errorf("the key of before: %v", err)
	}

	vars["DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS"] = "true"
	for what, c := range map[string]struct {
		key   string
		works bool
	}{"a member's": {hers, false}, "an owner's": {his, true}, "nobody's": {nobodys, true}} {
		if _, err := k.Authenticate(t.Context(), c.key); (err == nil) != c.works || err != nil && !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s key: %v, want works %t", what, err, c.works)
		}
	}
	if _, err := sessions.SessionViewer(t.Context(), begun.Token); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("a session of a member's key: %v", err)
	}
	vars["DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS"] = "false"
	if _, err := sessions.SessionViewer(t.Context(), begun.Token); err != nil {
		t.Errorf("the session when keys work again: %v", err)
	}
}

package account

import (
	"errors"
	"log/slog"
	"testing"
	"time"

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

// A key for metrics has no account, only owners create it, and it opens nothing but the metrics. A node
// that may have missed changes still accepts it.
func TestMetricsKey_isNoCredentialElsewhere(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	none := func(string) (string, bool) { return "", false }
	k := NewKeyring(l, none, l.time, slog.New(slog.DiscardHandler))
	ann, boss := l.person("ann@example.com", catalog.RoleMember), l.person("boss@example.com", catalog.RoleOwner)
	member := Person{catalog.Viewer{Role: catalog.RoleMember, Account: ann.ID, Name: ann.Email}}
	owner := Owner{catalog.Viewer{Role: catalog.RoleOwner, Account: boss.ID, Name: boss.Email}}
	for what, c := range map[string]struct {
		by   Holder
		req  CreateKeyRequest
		want error
	}{
		"by a member":               {member, CreateKeyRequest{}, call.ErrForbidden},
		"of an account":             {owner, CreateKeyRequest{User: ann.Email}, call.ErrInvalid},
		"that sees all code":        {owner, CreateKeyRequest{All: true}, call.ErrInvalid},
		"by an owner":               {owner, CreateKeyRequest{}, nil},
		"by the operator of a node": {Operator(), CreateKeyRequest{}, nil},
	} {
		c.req.Name, c.req.Role = what, catalog.RoleMetrics
		made, err := k.CreateKey(t.Context(), c.by, c.req)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			continue
		}
		if made.Info.Role != catalog.RoleMetrics || made.Info.User != "" {
			t.Errorf("%s: %+v", what, made.Info)
		}

		l.age = 1000 * time.Hour
		if v, ok := k.MetricsViewer(t.Context(), made.Key); !ok || v.Role != catalog.RoleMetrics {
			t.Errorf("%s: the metrics refuse %+v", what, v)
		}
		l.age = 0
		if _, err := k.Authenticate(t.Context(), made.Key); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s: it opens more: %v", what, err)
		}
		if _, err := NewSessions(k, none).BeginWithKey(t.Context(), made.Key, SignIn{}); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s: it begins a session: %v", what, err)
		}
		if _, err := k.RevokeKey(t.Context(), owner, made.Info.ID); err != nil {
			t.Fatal(err)
		}
		if _, ok := k.MetricsViewer(t.Context(), made.Key); ok {
			t.Errorf("%s: it works when it is revoked", what)
		}
	}

	his, err := k.CreateKey(t.Context(), owner, CreateKeyRequest{Name: "his", Role: catalog.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := k.MetricsViewer(t.Context(), his.Key); ok {
		t.Error("an owner's key has the role metrics")
	}
}

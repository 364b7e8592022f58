package account

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// A caller gets their own description, whichever way they signed in, with the expiry.
func TestCaller_isDescribedForEachWayToSignIn(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	k := NewKeyring(l, func(string) (string, bool) { return "", false }, l.time, slog.New(slog.DiscardHandler))
	sessions := NewSessions(k, func(string) (string, bool) { return "", false })
	boss := l.person("boss@example.com", catalog.RoleOwner)
	begin := l.time()

	made := func(by Holder, req CreateKeyRequest) *CreateKeyResponse {
		key, err := k.CreateKey(t.Context(), by, req)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	let := func(v catalog.Viewer, err error) catalog.Viewer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	signed := func(begun *BegunSession, err error) catalog.Viewer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return let(sessions.SessionViewer(t.Context(), begun.Token))
	}

	// A member's key of an owner that expires before a session does, and a key without an account.
	hers := made(Operator(), CreateKeyRequest{Name: "hers", User: boss.ID, Expires: time.Hour})
	robot := made(Operator(), CreateKeyRequest{Name: "robot", Role: catalog.RoleOwner})
	byKey, byRobot := let(k.Authenticate(t.Context(), hers.Key)), let(k.Authenticate(t.Context(), robot.Key))
	byPassword, bySignIn := signed(sessions.Begin(t.Context(), boss.ID, SignIn{})), signed(sessions.BeginWithKey(t.Context(), hers.Key, SignIn{}))

	user := Caller{Kind: CallerUser, ID: boss.ID, Name: "boss@example.com", Email: "boss@example.com", Role: catalog.RoleMember, KeyID: hers.Info.ID, Expires: begin.Add(time.Hour)}
	keyed, session, owner := user, user, user
	keyed.By, session.By = ByKey, BySession
	owner.By, owner.Role, owner.KeyID, owner.Expires = BySession, catalog.RoleOwner, "", begin.Add(sessionIdle)
	for what, c := range map[string]struct {
		viewer catalog.Viewer
		want   Caller
	}{
		"a key of an account":   {byKey, keyed},
		"a session by that key": {bySignIn, session},
		"a session of an owner": {byPassword, owner},
		"a key of nobody":       {byRobot, Caller{Kind: CallerKey, ID: robot.Info.ID, Name: "robot", Role: catalog.RoleOwner, By: ByKey, KeyID: robot.Info.ID}},
		"the operator":          {catalog.Operator(), Caller{Kind: CallerOperator, Name: "operator", Role: catalog.RoleOwner, By: BySocket}},
		"a guest":               {catalog.Guest(), Caller{Kind: CallerGuest, Name: "anonymous", Role: catalog.RoleGuest, By: ByNothing}},
	} {
		if got, err := k.Caller(c.viewer); err != nil || *got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", what, got, err, c.want)
		}
	}

	// If the key ends during the request, the caller gets an error.
	if _, err := k.RevokeKey(t.Context(), Operator(), hers.Info.ID); err != nil {
		t.Fatal(err)
	}
	if err := sessions.endByID(t.Context(), []string{byPassword.Session}); err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]catalog.Viewer{"a revoked key": byKey, "a session by it": bySignIn, "an ended session": byPassword, "nobody": {}} {
		if got, err := k.Caller(v); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

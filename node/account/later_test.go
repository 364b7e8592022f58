package account

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// An expired credential stays expired on a node whose clock is set back.
func TestExpiredCredential_staysExpiredIfTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	none := func(string) (string, bool) { return "", false }
	var behind time.Duration
	keys := NewKeyring(l, none, func() time.Time { return l.time().Add(-behind) }, slog.New(slog.DiscardHandler))
	sessions := NewSessions(keys, none)

	ann := l.person("ann@example.com", catalog.RoleMember)
	begun, err := sessions.Begin(t.Context(), ann.ID, SignIn{})
	if err != nil {
		t.Fatal(err)
	}
	by, err := AsHolder(catalog.Viewer{Role: catalog.RoleMember, Account: ann.ID, Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.CreateKey(t.Context(), by, CreateKeyRequest{Name: "ci", Expires: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	shown := func() (bySession, byKey error) {
		_, bySession = sessions.SessionViewer(t.Context(), begun.Token)
		_, byKey = keys.Authenticate(t.Context(), key.Key)
		return bySession, byKey
	}
	if a, b := shown(); a != nil || b != nil {
		t.Fatalf("before: %v, %v", a, b)
	}

	l.pass(400 * 24 * time.Hour)
	l.person("bob@example.com", catalog.RoleMember) // the cluster commits an entry
	behind = 400 * 24 * time.Hour
	if a, b := shown(); !errors.Is(a, call.ErrUnauthenticated) || !errors.Is(b, call.ErrUnauthenticated) {
		t.Errorf("with a clock that is set back: session %v, key %v", a, b)
	}
}

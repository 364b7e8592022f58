package account

import (
	"context"
	"log/slog"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// lagging is a ledger as a node sees it that has not applied the last changes:
// only asking the leader brings them.
type lagging struct {
	*ledger
	view *catalog.View
}

func (l *lagging) View() *catalog.View { return l.view }

func (l *lagging) Sync(ctx context.Context) (uint64, error) {
	l.view = l.ledger.View()
	return l.ledger.Sync(ctx)
}

// Who has linked a provider at one node signs in by it at the next, which has
// not heard of that yet.
func TestAnIdentityLinkedAtAnotherNodeIsKnown(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	none := func(string) (string, bool) { return "", false }
	at := func(c Catalog) *Identities {
		k := NewKeyring(c, none, l.time, slog.New(slog.DiscardHandler))
		return NewIdentities(NewPasswords(k, NewSessions(k, none), none))
	}
	ann := l.person("ann@example.com", catalog.RoleMember)
	who := Proof{Method: "corp", Title: "Corp", Authority: "https://id.example.com", Subject: "7", Login: "ann", Email: "ann@corp.example", Proven: true}

	other := &lagging{l, l.View()}
	by := Person{catalog.Viewer{Role: catalog.RoleMember, Account: ann.ID, Name: ann.Email}}
	if err := at(l).Link(t.Context(), by, who); err != nil {
		t.Fatal(err)
	}

	begun, err := at(other).Enter(t.Context(), who, SignIn{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewSessions(NewKeyring(l, none, l.time, slog.New(slog.DiscardHandler)), none).SessionViewer(t.Context(), begun.Token)
	if err != nil || v.Account != ann.ID {
		t.Errorf("signed in as %q, %v; want %q", v.Account, err, ann.ID)
	}
}

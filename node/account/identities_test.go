package account

import (
	"context"
	"log/slog"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// lagging is a ledger seen by a node that has not applied the last changes. Sync brings them.
type lagging struct {
	*countingCatalog
	view *catalog.View
}

func (l *lagging) View() *catalog.View { return l.view }

func (l *lagging) Sync(ctx context.Context) (uint64, error) {
	l.view = l.countingCatalog.View()
	return l.countingCatalog.Sync(ctx)
}

// A person who linked a provider on one node can sign in on another that has not heard of it yet.
func TestSignIn_acceptsAnIdentityLinkedOnAnotherNode(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	none := func(string) (string, bool) { return "", false }
	at := func(c Catalog) *Identities {
		k := NewKeyring(c, none, l.time, slog.New(slog.DiscardHandler))
		return NewIdentities(NewPasswords(k, NewSessions(k, none), none))
	}
	l.configure(t, corpFile)
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

const corpFile = `{"identityProviders": {"corp": {"provider": "oidc", "purpose": "sso",
	"issuer": {"env": "I"}, "clientId": {"env": "A"}, "clientSecret": {"env": "B"}}}}`

// configure puts a configuration in force.
func (l *countingCatalog) configure(t *testing.T, text string) {
	t.Helper()
	file, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := catalog.NewSetConfig([]byte(text), file)
	set.Instead = catalog.InsteadOfAny
	if _, err := l.Propose(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// Removing a provider from the configuration ends its sessions. Other sessions stay.
func TestSessions_endWhenTheirProviderIsRemoved(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	vars := map[string]string{}
	s := sessionsOn(l, vars)
	l.configure(t, corpFile)
	ann := l.person("ann@example.com", catalog.RoleMember)
	tokens := map[string]string{}
	for _, method := range []string{"corp", "password", "gcp-iap"} {
		begun, err := s.Begin(t.Context(), ann.ID, SignIn{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		tokens[method] = begun.Token
	}
	expect := func(when string, in map[string]bool) {
		t.Helper()
		for method, token := range tokens {
			if _, err := s.SessionViewer(t.Context(), token); (err == nil) != in[method] {
				t.Errorf("%s: by %s: %v", when, method, err)
			}
		}
	}

	vars["AUTH_EE_GCP_IAP_ENABLED"] = "true"
	expect("with both", map[string]bool{"corp": true, "password": true, "gcp-iap": true})
	l.configure(t, `{}`)
	expect("without the one of the file", map[string]bool{"password": true, "gcp-iap": true})
	delete(vars, "AUTH_EE_GCP_IAP_ENABLED")
	expect("without any", map[string]bool{"password": true})
}

// Addresses with letters beyond ASCII are refused: in lower case some become other addresses.
func TestEmailAddress_refusesLettersBeyondASCII(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Ann@Example.COM":       "ann@example.com",
		" ann@example.com ":     "ann@example.com",
		"\u212Abob@example.com": "", // Kelvin sign
		"\u212Bnn@example.com":  "", // Angstrom sign
		"ann@example\u3002com":  "", // ideographic full stop
		"ann@ex\u0430mple.com":  "", // Cyrillic a
		"\u017Fue@example.com":  "", // long s
		"ann@example.com\u200b": "",
		"Ann <ann@example.com>": "",
		"ann":                   "",
	} {
		p := Proof{Email: text, Proven: true}.normalized()
		if p.Email != want || p.Proven != (want != "") {
			t.Errorf("%+q is proven as %q (%t), want %q", text, p.Email, p.Proven, want)
		}
		if got, err := cleanEmail(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%+q is the address %q (%v), want %q", text, got, err, want)
		}
	}
}

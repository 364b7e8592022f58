package signin

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// Linked is a provider and who a person is there.
type Linked struct {
	Provider  // zero for one that the configuration does not name any more
	Authority string
	Subject   string // "" where the person has not linked it
	Login     string
	Email     string
}

// Linked lists the providers for a person, and identities of providers that are
// not configured any more.
func (s *Server) Linked(ctx context.Context, by account.Person) []Linked {
	own := s.d.Accounts.IdentitiesOf(by)
	var all []Linked
	seen := map[string]bool{}
	for _, p := range s.providers() {
		// Nobody links who the proxy says one is, and nobody takes it away: it says so with each
		// request. It is no identity of a provider that is gone either.
		if p.way == (proxied{}) {
			seen[proxyIssuer] = true
			continue
		}

		x := Linked{Provider: p.shown()}
		x.Authority, _ = s.authority(ctx, p) // one that cannot be told now is linked by nobody
		// A person may have several at one provider.
		found := false
		for _, i := range own {
			if i.Authority == x.Authority {
				x.Subject, x.Login, x.Email = i.Subject, i.Login, i.Email
				all, found = append(all, x), true
			}
		}

		// Also where nothing is linked, so that what follows is only of providers that are gone.
		seen[x.Authority] = true
		if !found {
			all = append(all, x)
		}
	}

	// Shown so that they can be taken away.
	for _, i := range own {
		if !seen[i.Authority] {
			all = append(all, Linked{Authority: i.Authority, Subject: i.Subject, Login: i.Login, Email: i.Email})
		}
	}
	return all
}

// authority is who gives the subjects of a provider. It asks nobody but the
// manager of secrets.
func (s *Server) authority(ctx context.Context, p *provider) (string, error) {
	switch {
	case p.way == (proxied{}):
		return proxyIssuer, nil
	case p.Issuer != nil:
		return s.secret(ctx, p.Issuer)
	}
	return p.base, nil
}

// Unlink takes away who a person is at a provider. It fails with ErrInvalid
// where that is their last way to sign in.
func (s *Server) Unlink(ctx context.Context, by account.Person, authority, subject string) error {
	// Which ways are left is the configuration's to say; whether one of them must stay is checked
	// where the identity is taken away.
	var signIn []string
	for _, p := range s.providers() {
		if a, err := s.authority(ctx, p); err == nil && p.signsIn() {
			signIn = append(signIn, a)
		}
	}
	return s.d.Accounts.Unlink(ctx, by, authority, subject, signIn)
}

// Missing lists the providers that somebody who is signed in has to link before
// anything else. Owners are only reminded: who set a provider up wrong can mend it.
func (s *Server) Missing(v catalog.Viewer) (titles []string) {
	by, err := account.AsPerson(v)
	// A key has no browser in which its owner could link anything.
	if err != nil || v.Session == "" || v.Role == catalog.RoleOwner {
		return nil
	}
	var own []account.IdentityInfo
	for _, p := range s.providers() {
		if !p.AccountLinkingRequired {
			continue
		}

		// Looked up once, and only where something is required.
		if own == nil {
			own = s.d.Accounts.IdentitiesOf(by)
		}
		if !slices.ContainsFunc(own, func(i account.IdentityInfo) bool { return i.Authority == p.base }) {
			titles = append(titles, p.label())
		}
	}
	return titles
}

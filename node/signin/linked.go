package signin

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// Linked is a provider, with a person's identity there.
type Linked struct {
	Provider  // zero if the provider is no longer configured
	Authority string
	Subject   string // "": the person has not linked it
	Login     string
	Email     string
}

// Linked returns all providers for a person, and their identities at providers that are no longer
// configured.
func (s *Server) Linked(ctx context.Context, by account.Person) []Linked {
	own := s.d.Accounts.IdentitiesOf(by)
	var all []Linked
	listed := map[string]bool{}
	for _, p := range s.providers() {
		// A proxy's identity can be neither linked nor removed: it comes with each request.
		if p.way == (proxied{}) {
			listed[proxyIssuer] = true
			continue
		}

		x := Linked{Provider: p.shown()}
		x.Authority, _ = s.authority(ctx, p) // on error nothing is shown as linked
		// A person may have several identities at one provider.
		found := false
		for _, i := range own {
			if i.Authority == x.Authority {
				x.Subject, x.Login, x.Email = i.Subject, i.Login, i.Email
				all, found = append(all, x), true
			}
		}

		// The rest of own are identities of providers that are gone.
		listed[x.Authority] = true
		if !found {
			all = append(all, x)
		}
	}

	// Show these, so that they can be removed.
	for _, i := range own {
		if !listed[i.Authority] {
			all = append(all, Linked{Authority: i.Authority, Subject: i.Subject, Login: i.Login, Email: i.Email})
		}
	}
	return all
}

// authority returns the authority of a provider's subjects. It may read a secret manager, but does
// not call the provider.
func (s *Server) authority(ctx context.Context, p *provider) (string, error) {
	switch {
	case p.way == (proxied{}):
		return proxyIssuer, nil
	case p.Issuer != nil:
		return s.secretValue(ctx, p.Issuer)
	}
	return p.base, nil
}

// Unlink removes an identity of a person. It returns ErrInvalid for their last way to sign in.
func (s *Server) Unlink(ctx context.Context, by account.Person, authority, subject string) error {
	// The configuration tells which providers remain. The command checks whether one is enough.
	var signIn []string
	for _, p := range s.providers() {
		if a, err := s.authority(ctx, p); err == nil && p.signsIn() {
			signIn = append(signIn, a)
		}
	}
	return s.d.Accounts.Unlink(ctx, by, authority, subject, signIn)
}

// Missing returns the providers that a signed-in person must link before anything else. Owners are
// exempt, so that they can fix a wrong provider.
func (s *Server) Missing(v catalog.Viewer) (titles []string) {
	by, err := account.AsPerson(v)
	// A key has no browser for linking.
	if err != nil || v.Session == "" || v.Role == catalog.RoleOwner {
		return nil
	}
	var own []account.IdentityInfo
	for _, p := range s.providers() {
		if !p.AccountLinkingRequired {
			continue
		}

		// Look them up only if something is required.
		if own == nil {
			own = s.d.Accounts.IdentitiesOf(by)
		}
		if !slices.ContainsFunc(own, func(i account.IdentityInfo) bool { return i.Authority == p.base }) {
			titles = append(titles, p.label())
		}
	}
	return titles
}

package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
)

// scopes are what is asked of a provider: who somebody is, and, where code hosts
// are asked in the name of people, leave to do that.
func (s *Server) scopes(p *provider) []string {
	if !s.asksAt(p) {
		return p.scopes
	}
	return slices.Concat(p.scopes, p.asks.scopes)
}

// asksAt tells whether a provider is asked what somebody may read.
func (s *Server) asksAt(p *provider) bool { return p.asks != nil && s.d.Tokens.Wanted() }

// Asking is what it takes to ask a code host in the name of somebody.
type Asking struct {
	Identity *catalog.Identity
	Kept     *catalog.HostToken // of the identity
	Fence    uint64             // of the job that asks
	Anew     bool               // the host has refused the token that is kept
}

// renewBefore is how long before its end a token is changed for another.
const renewBefore = 10 * time.Minute

// Own opens a code host in the name of somebody, with a token that is good now.
// A token that is about to end is changed for another first, which is kept
// before it is used. A *host.Refusal that refuses the person says that they have
// to link the account again.
func (s *Server) Own(ctx context.Context, a Asking) (host.Own, error) {
	// By the address, not by the name, which the configuration may have changed.
	p := s.providerOf(a.Identity)
	if p == nil {
		return nil, errors.New("the configuration does not name its identity provider any more")
	}
	token, err := s.d.Tokens.Of(ctx, a.Kept)
	if err != nil {
		return nil, err
	}

	left := token.Expires.Sub(s.d.Now())
	ends := !token.Expires.IsZero() && left < renewBefore
	switch {
	// Also where the host has refused it before its end: it may have been taken back for a new one.
	case token.Refresh != "" && (ends || a.Anew):
		if token, err = s.renew(ctx, p, a, token); err != nil {
			return nil, err
		}
	// Without a way to change it, it is used for as long as it lasts.
	case ends && left <= 0, a.Anew:
		return nil, host.RefusePerson(p.label() + " takes the person's token no more, and gave none to change it for another: link the account again")
	}
	return p.asks.open(s.person(p, a.Identity.Subject, token), s.d.Hosts)
}

// providerOf is the code host of the configuration that an identity is of.
func (s *Server) providerOf(x *catalog.Identity) *provider {
	for _, p := range s.providers() {
		if p.asks != nil && strings.EqualFold(strings.TrimRight(x.Provider, "/"), p.base) {
			return p
		}
	}
	return nil
}

// renew changes a token for another one, and keeps that.
func (s *Server) renew(ctx context.Context, p *provider, a Asking, old account.HostToken) (account.HostToken, error) {
	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return old, fmt.Errorf("find %s: %w", p.label(), err)
	}

	// Without the old access token, so that the library changes it whatever its end is.
	got, err := s.atProvider(ctx, p, at, func(cfg *oauth2.Config) (*oauth2.Token, error) {
		return cfg.TokenSource(oidc.ClientContext(ctx, s.client), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	})
	if err != nil {
		return old, p.notRenewed(err)
	}
	token := account.HostToken{Access: got.AccessToken, Refresh: got.RefreshToken, Expires: got.Expiry}
	// Kept before it is used: most hosts have ended the old one by now, and a node that dies must
	// not take the only good one with it.
	if err := s.d.Tokens.Renew(ctx, a.Kept, a.Identity.Account, a.Fence, token); err != nil {
		return old, fmt.Errorf("keep the new token: %w", err)
	}
	return token, nil
}

// notRenewed reads why a provider changes no token. What it sends is cut, and no
// secret of ours is in it.
func (p *provider) notRenewed(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return fmt.Errorf("change the token at %s: %w", p.label(), err)
	}

	// Gitea says that the client is unauthorized where the token is used up.
	said := strings.ToLower(answer.ErrorDescription)
	usedUp := answer.ErrorCode == "unauthorized_client" && strings.Contains(said, "token")
	if usedUp || answer.ErrorCode == "invalid_grant" || answer.ErrorCode == "bad_refresh_token" {
		return host.RefusePerson(p.label() + " gives no new token for the person's old one (" + plain(answer.ErrorCode, 60) + "): they took it back, or were away for too long; link the account again")
	}

	status := 0
	if answer.Response != nil {
		status = answer.Response.StatusCode
	}
	return fmt.Errorf("%s changes no token: status %d, %s", p.label(), status, plain(answer.ErrorCode+" "+answer.ErrorDescription, 200))
}

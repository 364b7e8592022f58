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

// scopes returns the scopes to request: for knowing who the person is, and for asking the host in
// their name if that is enabled.
func (s *Server) scopes(p *provider) []string {
	if !s.asksAt(p) {
		return p.scopes
	}
	return slices.Concat(p.scopes, p.asks.scopes)
}

// asksAt reports whether a provider is asked what people may read.
func (s *Server) asksAt(p *provider) bool { return p.asks != nil && s.d.Tokens.Wanted() }

// Asking is a request to ask a code host in a person's name.
type Asking struct {
	Identity *catalog.Identity
	Kept     *catalog.HostToken // stored token of the identity
	Fence    uint64             // of the job that asks
	Anew     bool               // the host has refused the stored token
}

// renewBefore is how long before its expiry a token is refreshed.
const renewBefore = 10 * time.Minute

// Own opens a code host in a person's name, with a valid token. A token that is about to expire is
// refreshed first, and stored before use. A *host.Refusal that refuses the person means that they
// must link the account again.
func (s *Server) Own(ctx context.Context, a Asking) (host.Own, error) {
	// Match by URL: the name in the configuration may have changed.
	p := s.providerOf(a.Identity)
	if p == nil {
		return nil, errors.New("the configuration does not name its identity provider any more")
	}
	token, err := s.d.Tokens.Of(ctx, a.Kept)
	if err != nil {
		return nil, err
	}

	remaining := token.Expires.Sub(s.d.Now())
	ends := !token.Expires.IsZero() && remaining < renewBefore
	switch {
	// Also refresh after a refusal: the token may have been replaced.
	case token.Refresh != "" && (ends || a.Anew):
		if token, err = s.renew(ctx, p, a, token); err != nil {
			return nil, err
		}
	// Without a refresh token, use it until it expires.
	case ends && remaining <= 0, a.Anew:
		return nil, host.RefusePerson(p.label() + " takes the person's token no more, and gave none to change it for another: link the account again")
	}
	return p.asks.open(s.person(p, a.Identity.Subject, token), s.d.Hosts)
}

// providerOf returns the configured code host of an identity, or nil.
func (s *Server) providerOf(x *catalog.Identity) *provider {
	for _, p := range s.providers() {
		if p.asks != nil && strings.EqualFold(strings.TrimRight(x.Provider, "/"), p.base) {
			return p
		}
	}
	return nil
}

// renew refreshes a token, and stores the new one.
func (s *Server) renew(ctx context.Context, p *provider, a Asking, old account.HostToken) (account.HostToken, error) {
	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return old, fmt.Errorf("find %s: %w", p.label(), err)
	}

	// Without the old access token, the library always refreshes.
	got, err := s.callWithSecret(ctx, p, at, func(cfg *oauth2.Config) (*oauth2.Token, error) {
		return cfg.TokenSource(oidc.ClientContext(ctx, s.client), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	})
	if err != nil {
		return old, p.renewalError(err)
	}
	token := account.HostToken{Access: got.AccessToken, Refresh: got.RefreshToken, Expires: got.Expiry}
	// Store the new token first: most hosts have already revoked the old one, and this node may
	// die.
	if err := s.d.Tokens.Renew(ctx, a.Kept, a.Identity.Account, a.Fence, token); err != nil {
		return old, fmt.Errorf("keep the new token: %w", err)
	}
	return token, nil
}

// renewalError returns the error for a failed refresh. It cuts what the provider sent. No secret of
// ours is in it.
func (p *provider) renewalError(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return fmt.Errorf("change the token at %s: %w", p.label(), err)
	}

	// Gitea answers unauthorized_client for a used refresh token.
	description := strings.ToLower(answer.ErrorDescription)
	usedUp := answer.ErrorCode == "unauthorized_client" && strings.Contains(description, "token")
	if usedUp || answer.ErrorCode == "invalid_grant" || answer.ErrorCode == "bad_refresh_token" {
		return host.RefusePerson(p.label() + " gives no new token for the person's old one (" + plainLine(answer.ErrorCode, 60) + "): they took it back, or were away for too long; link the account again")
	}

	status := 0
	if answer.Response != nil {
		status = answer.Response.StatusCode
	}
	return fmt.Errorf("%s changes no token: status %d, %s", p.label(), status, plainLine(answer.ErrorCode+" "+answer.ErrorDescription, 200))
}

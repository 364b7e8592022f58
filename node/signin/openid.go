package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/account"
)

// reached holds the endpoints and names of a provider.
type reached struct {
	authority   string // issuer of the subjects
	endpoint    oauth2.Endpoint
	issuer      string // of OpenID Connect; "": the provider does not speak it
	sendsIssuer bool   // every answer names the issuer
	openID      *oidc.Provider
}

// openID is the way of providers that speak OpenID Connect.
type openID struct {
	proven  func(*claims) bool
	subject func(*claims) string // nil: the claim sub
}

// claims are what a provider tells about a person.
type claims struct {
	Subject    string `json:"sub"`
	Authorized string `json:"azp"`
	Email      string `json:"email"`
	Verified   truth  `json:"email_verified"`
	Name       string `json:"name"`
	Login      string `json:"preferred_username"`
	Object     string `json:"oid"`      // for Entra ID
	Owned      truth  `json:"xms_edov"` // for Entra ID: the tenant owns the address's domain
}

// truth is a boolean claim, which some providers write as text or number.
type truth bool

// UnmarshalJSON implements json.Unmarshaler. Anything that is not clearly true is false.
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = truth(slices.Contains([]string{`true`, `"true"`, `1`, `"1"`}, string(b)))
	return nil
}

func saysVerified(c *claims) bool { return bool(c.Verified) }
func domainOwned(c *claims) bool  { return bool(c.Owned) }
func never(*claims) bool          { return false }
func objectID(c *claims) string   { return c.Object }

// skew is how much a provider's clock may differ.
const skew = time.Minute

// lenient returns the time for checking the expiry of tokens.
func (s *Server) lenient() time.Time { return s.d.Now().Add(-skew) }

// algorithms lists the accepted signatures of tokens: none with a shared secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// reach returns what the discovery document of the provider says; it is cached.
func (o openID) reach(ctx context.Context, s *Server, p *provider) (*reached, error) {
	// A configured issuer wins over the URL. Use it exactly, because it identifies people.
	issuer := p.base
	if p.Issuer != nil {
		var err error
		if issuer, err = s.secretValue(ctx, p.Issuer); err != nil {
			return nil, err
		}
	}
	return s.found.get(ctx, issuer, func(ctx context.Context) (*reached, error) { return s.discover(ctx, issuer) })
}

// discover reads a provider's discovery document.
func (s *Server) discover(ctx context.Context, issuer string) (*reached, error) {
	// The issuer identifies people, so check it first.
	base, err := url.Parse(issuer)
	if err != nil || base.Host == "" || len(issuer) > 200 {
		return nil, mistake("its issuer is no address of at most 200 bytes")
	}

	// The library compares the issuer with the document's, so that no provider can pose as another.
	at, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), issuer)
	if err != nil {
		// A slash too much or too little is the most common mistake, so name both.
		var other *oidc.IssuerMismatchError
		if errors.As(err, &other) {
			return nil, mistake("it calls itself %q: write that, to the letter, as the issuer, which is %q now", other.Discovered, other.Provided)
		}
		return nil, err
	}

	var more struct {
		Keys        string   `json:"jwks_uri"`
		SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := at.Claims(&more); err != nil {
		return nil, fmt.Errorf("read what it says of itself: %w", err)
	}

	endpoint := at.Endpoint()
	addresses := []string{endpoint.AuthURL, endpoint.TokenURL, more.Keys}
	if at.UserInfoEndpoint() != "" {
		addresses = append(addresses, at.UserInfoEndpoint())
	}
	for _, address := range addresses {
		// Secrets must not go to a less secure URL than the issuer. User information or a fragment
		// would only mislead.
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
			return nil, mistake("it gives %q as an address to ask, which is none of %s", address, base.Scheme)
		}
	}

	// If a provider accepts both, the library finds out which one works.
	switch basic, post := slices.Contains(more.Methods, "client_secret_basic"), slices.Contains(more.Methods, "client_secret_post"); {
	case len(more.Methods) == 0, basic && !post:
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case post && !basic:
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &reached{issuer, endpoint, issuer, more.SendsIssuer, at}, nil
}

// who verifies the ID token of a sign-in, and returns who it names.
func (o openID) who(ctx context.Context, s *Server, p *provider, at *reached, t *oauth2.Token, nonce string) (who account.Proof, err error) {
	c, err := s.checkIDToken(ctx, p, at, t, nonce)
	if err != nil {
		return who, err
	}
	if c.Email == "" && at.openID.UserInfoEndpoint() != "" {
		// Some providers give names and addresses only in a second request.
		info, err := at.openID.UserInfo(ctx, oauth2.StaticTokenSource(t))
		if err != nil {
			return who, fmt.Errorf("ask for names and address: %w", err)
		}

		// The second answer is not signed, so it must be about the same person.
		if info.Subject != c.Subject {
			return who, mistake("it tells of somebody else than who signed in")
		}
		if err := info.Claims(c); err != nil {
			return who, fmt.Errorf("read names and address: %w", err)
		}
	}

	who = account.Proof{Subject: c.Subject, Login: c.Login, Name: c.Name, Email: c.Email, Proven: o.proven(c)}
	if o.subject != nil {
		who.Subject = o.subject(c)
	}
	return who, nil
}

// checkIDToken returns the claims of an id token, after checking that it was issued to us for this flow.
func (s *Server) checkIDToken(ctx context.Context, p *provider, at *reached, t *oauth2.Token, nonce string) (*claims, error) {
	// An access token does not tell its application, but an id token does.
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return nil, mistake("it sent no id token")
	}
	client, err := s.secretValue(ctx, p.ClientID)
	if err != nil {
		return nil, err
	}

	// The client must match: a token for another application proves nothing here.
	verifier := at.openID.VerifierContext(ctx, &oidc.Config{
		ClientID: client, SupportedSigningAlgs: algorithms, Now: s.lenient,
	})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, err
	}

	var c claims
	if err := token.Claims(&c); err != nil {
		return nil, fmt.Errorf("read the id token: %w", err)
	}

	// A valid signature is not enough: the token may be stolen from another flow or application.
	switch {
	case token.Nonce != nonce:
		return nil, mistake("the id token is of another sign-in")
	// With several audiences the token must name its application.
	case c.Authorized != "" && c.Authorized != client, len(token.Audience) > 1 && c.Authorized == "":
		return nil, mistake("the id token is for another application")
	case token.Subject == "":
		return nil, mistake("the id token is of nobody")
	}

	// Check that the access token was issued together with the id token.
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(t.AccessToken); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// How long discovered documents and failures are cached.
const (
	foundFresh  = time.Hour
	foundFailed = 5 * time.Second
	maxFound    = 64
)

// directory caches the endpoints of providers. It is safe for concurrent use.
type directory struct {
	now func() time.Time

	mu       sync.Mutex // guards kept
	byIssuer map[string]*discovery
}

// discovery is what was discovered of a provider. Its mutex is held meanwhile, so that discovery runs
// only once.
type discovery struct {
	mu  sync.Mutex // guards the fields below
	at  *reached
	err error
	end time.Time
}

func newDirectory(now func() time.Time) *directory {
	return &directory{now: now, byIssuer: map[string]*discovery{}}
}

// get returns the cached result for an issuer, or calls find.
func (d *directory) get(ctx context.Context, issuer string, find func(context.Context) (*reached, error)) (*reached, error) {
	// Lock the directory only for the look-up: a slow provider must not delay sign-ins at other providers.
	d.mu.Lock()
	f := d.byIssuer[issuer]
	if f == nil {
		if len(d.byIssuer) >= maxFound {
			clear(d.byIssuer) // the configuration has changed many times
		}
		f = &discovery{}
		d.byIssuer[issuer] = f
	}
	d.mu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()
	// Another caller may have finished the same discovery.
	if d.now().Before(f.end) {
		return f.at, f.err
	}
	at, err := find(ctx)
	switch {
	case err == nil:
		f.at, f.err, f.end = at, nil, d.now().Add(foundFresh)
	case ctx.Err() != nil:
		// The caller has gone, so this proves nothing about the provider.
	case f.at != nil:
		// Keep using the old result.
		f.end = d.now().Add(foundFailed)
		return f.at, nil
	default:
		f.err, f.end = err, d.now().Add(foundFailed)
	}
	return at, err
}

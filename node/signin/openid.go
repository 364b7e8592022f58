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

// reached is where a provider is asked, and by which name it answers.
type reached struct {
	authority   string // who gives the subjects
	endpoint    oauth2.Endpoint
	issuer      string // of OpenID Connect; "" for a provider that does not speak it
	sendsIssuer bool   // every answer names it
	openID      *oidc.Provider
}

// openID is the way of providers that speak OpenID Connect.
type openID struct {
	proven  func(*claims) bool
	subject func(*claims) string // nil: the claim sub
}

// claims are what a provider says of somebody.
type claims struct {
	Subject    string `json:"sub"`
	Authorized string `json:"azp"`
	Email      string `json:"email"`
	Verified   truth  `json:"email_verified"`
	Name       string `json:"name"`
	Login      string `json:"preferred_username"`
	Object     string `json:"oid"`      // Entra ID
	Owned      truth  `json:"xms_edov"` // Entra ID: the address is of a domain that the tenant owns
}

// truth is a claim that some write as a text or a number.
type truth bool

// UnmarshalJSON takes what is not clearly true for false.
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = truth(slices.Contains([]string{`true`, `"true"`, `1`, `"1"`}, string(b)))
	return nil
}

func saysVerified(c *claims) bool { return bool(c.Verified) }
func domainOwned(c *claims) bool  { return bool(c.Owned) }
func never(*claims) bool          { return false }
func objectID(c *claims) string   { return c.Object }

// skew is how far the clock of a provider may be off.
const skew = time.Minute

// lenient is the time by which tokens end.
func (s *Server) lenient() time.Time { return s.d.Now().Add(-skew) }

// algorithms are those by which tokens may be signed: none with a shared secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

func (o openID) reach(ctx context.Context, s *Server, p *provider) (*reached, error) {
	// The issuer goes before an address, and to the letter: identities are known by it.
	issuer := p.base
	if p.Issuer != nil {
		var err error
		if issuer, err = s.secret(ctx, p.Issuer); err != nil {
			return nil, err
		}
	}
	return s.found.get(ctx, issuer, func(ctx context.Context) (*reached, error) { return s.discover(ctx, issuer) })
}

// discover reads the document in which a provider says where it is asked.
func (s *Server) discover(ctx context.Context, issuer string) (*reached, error) {
	// A file of the configuration may hold anything, and the issuer is what identities are known by.
	base, err := url.Parse(issuer)
	if err != nil || base.Host == "" || len(issuer) > 200 {
		return nil, mistake("its issuer is no address of at most 200 bytes")
	}

	// It compares the issuer with that of the document, so that none can speak for another.
	at, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), issuer)
	if err != nil {
		// One slash more or less is the most common mistake: both are said.
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
		// Nothing that is secret goes to an address that is less safe than that of the issuer; a
		// name or a fragment in it would only mislead.
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
			return nil, mistake("it gives %q as an address to ask, which is none of %s", address, base.Scheme)
		}
	}

	// Where a provider takes both, the library finds out which the client may use.
	switch basic, post := slices.Contains(more.Methods, "client_secret_basic"), slices.Contains(more.Methods, "client_secret_post"); {
	case len(more.Methods) == 0, basic && !post:
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case post && !basic:
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &reached{issuer, endpoint, issuer, more.SendsIssuer, at}, nil
}

func (o openID) who(ctx context.Context, s *Server, p *provider, at *reached, t *oauth2.Token, nonce string) (who account.Proof, err error) {
	c, err := s.checked(ctx, p, at, t, nonce)
	if err != nil {
		return who, err
	}
	if c.Email == "" && at.openID.UserInfoEndpoint() != "" {
		// Some tell names and addresses only where they are asked once more.
		info, err := at.openID.UserInfo(ctx, oauth2.StaticTokenSource(t))
		if err != nil {
			return who, fmt.Errorf("ask for names and address: %w", err)
		}

		// As the protocol demands: the second answer is not signed, and could be of another token.
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

// checked are the claims of an id token that was issued to us, for this flow.
func (s *Server) checked(ctx context.Context, p *provider, at *reached, t *oauth2.Token, nonce string) (*claims, error) {
	// An access token does not say for which application it was made; this one does.
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return nil, mistake("it sent no id token")
	}
	client, err := s.secret(ctx, p.ClientID)
	if err != nil {
		return nil, err
	}

	// The client is compared too: a token for another application is no proof here.
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

	// That it is signed is not enough: it may have been stolen from another
	// flow or another application.
	switch {
	case token.Nonce != nonce:
		return nil, mistake("the id token is of another sign-in")
	// With several audiences the token has to say for which of them it was made.
	case c.Authorized != "" && c.Authorized != client, len(token.Audience) > 1 && c.Authorized == "":
		return nil, mistake("the id token is for another application")
	case token.Subject == "":
		return nil, mistake("the id token is of nobody")
	}

	// Then the access token is the one that came with it, and not one put in its place.
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(t.AccessToken); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// Discovered documents are kept that long, and failures that they are not
// asked for at every click.
const (
	foundFresh  = time.Hour
	foundFailed = 5 * time.Second
	foundKept   = 64
)

// directory keeps where providers are asked. It is safe for concurrent use.
type directory struct {
	now func() time.Time

	mu   sync.Mutex // guards kept
	kept map[string]*finding
}

// finding is what discovery came to. Its mutex is held while it is under way, so
// that it happens once.
type finding struct {
	mu  sync.Mutex // guards the fields below
	at  *reached
	err error
	end time.Time
}

func newDirectory(now func() time.Time) *directory {
	return &directory{now: now, kept: map[string]*finding{}}
}

// get is what is kept of an issuer, or what find finds.
func (d *directory) get(ctx context.Context, issuer string, find func(context.Context) (*reached, error)) (*reached, error) {
	// The whole is locked for the look-up alone: one provider that is slow holds up no other.
	d.mu.Lock()
	f := d.kept[issuer]
	if f == nil {
		if len(d.kept) >= foundKept {
			clear(d.kept) // of configurations that have changed many times
		}
		f = &finding{}
		d.kept[issuer] = f
	}
	d.mu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()
	// Whoever waited for the same discovery finds what it came to.
	if d.now().Before(f.end) {
		return f.at, f.err
	}
	at, err := find(ctx)
	switch {
	case err == nil:
		f.at, f.err, f.end = at, nil, d.now().Add(foundFresh)
	case ctx.Err() != nil:
		// Whoever asked has left: that says nothing of the provider.
	case f.at != nil:
		// A provider that was good an hour ago is still asked as it was then.
		f.end = d.now().Add(foundFailed)
		return f.at, nil
	default:
		f.err, f.end = err, d.now().Add(foundFailed)
	}
	return at, err
}

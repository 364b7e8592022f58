package signin

import (
	"context"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Google's Identity-Aware Proxy runs in front of this service. With each request it signs who sent
// it. The signature is for this service and valid for minutes. So there is no redirect to a
// provider.
const (
	// AssertionHeader is the header with the proxy's signed statement.
	AssertionHeader = "X-Goog-Iap-Jwt-Assertion"

	proxyIssuer = "https://cloud.google.com/iap"
	proxyKeys   = "https://www.gstatic.com/iap/verify/public_key-jwk"
)

// proxied is the way of the proxy.
type proxied struct{}

func (proxied) reach(context.Context, *Server, *provider) (*reached, error) {
	return &reached{authority: proxyIssuer}, nil
}

func (proxied) who(context.Context, *Server, *provider, *reached, *oauth2.Token, string) (account.Proof, error) {
	return account.Proof{}, mistake("nobody is sent to it, so nobody comes back")
}

// proxyOfVariables returns the proxy that AUTH_EE_GCP_IAP_ENABLED turns on, or nil if it is off or
// the configuration has one.
func (s *Server) proxyOfVariables() *provider {
	enabled, _ := s.d.Lookup("AUTH_EE_GCP_IAP_ENABLED")
	audience, _ := s.d.Lookup("AUTH_EE_GCP_IAP_AUDIENCE")
	if !strings.EqualFold(strings.TrimSpace(enabled), "true") {
		return nil
	}

	// The configuration wins.
	for _, x := range s.d.File().IdentityProviders {
		if x.Provider == "gcp-iap" || x.ID == "gcp-iap" {
			return nil
		}
	}
	return &provider{IdentityProvider: config.IdentityProvider{ID: "gcp-iap", Provider: "gcp-iap", Purpose: "sso"}, kind: kindNamed("gcp-iap"), audience: audience}
}

// beginThroughProxy signs in a person who came through the proxy.
func (s *Server) beginThroughProxy(ctx context.Context, p *provider, req Start) (*Begun, error) {
	// Without the header, the browser did not come through the proxy.
	if req.Assertion == "" {
		return nil, call.Fail(call.ErrUnauthenticated, "You did not come through %s. Use the address by which it is reached.", p.label())
	}
	leave, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	who, err := s.checkAssertion(ctx, p, req.Assertion)
	// Free the slot: no keys are fetched from here on.
	leave()
	if err != nil {
		return nil, s.logFailure(p, err)
	}

	if req.By != nil {
		return nil, call.Fail(call.ErrForbidden, "%s is not there to be linked.", p.label())
	}
	in, err := s.signInPerson(ctx, req.Link, who, req.SignIn)
	if err != nil {
		return nil, err
	}
	return &Begun{Title: p.label(), Session: in}, nil
}

// checkAssertion checks the proxy's statement.
func (s *Server) checkAssertion(ctx context.Context, p *provider, raw string) (who account.Proof, err error) {
	// The audience is this service. Otherwise a token for any other service behind a proxy would
	// do.
	audience := p.audience
	if p.Audience != nil {
		if audience, err = s.secretValue(ctx, p.Audience); err != nil {
			return who, err
		}
	}
	if audience == "" {
		return who, mistake("AUTH_EE_GCP_IAP_AUDIENCE is not set")
	}

	// The proxy signs only with this algorithm.
	verifier := oidc.NewVerifier(proxyIssuer, s.proxy, &oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{oidc.ES256}, Now: s.lenient})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return who, err
	}
	var c claims
	if err := token.Claims(&c); err != nil {
		return who, err
	}

	// It names nobody if the proxy lets everybody through.
	if token.Subject == "" {
		return who, mistake("it names nobody")
	}
	// Google knows the addresses of its accounts, so it is proven.
	return account.Proof{
		Method: p.ID, Title: p.label(), Authority: proxyIssuer, Subject: token.Subject, Login: c.Email, Email: c.Email, Proven: true,
	}, nil
}

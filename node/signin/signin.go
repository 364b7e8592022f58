package signin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
)

// Accounts is the part of *account.Identities that signing in uses.
type Accounts interface {
	Enter(ctx context.Context, who account.Proof, in account.SignIn) (*account.BegunSession, error)
	EnterWithLink(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error)
	MayLink(by account.Person) error
	Link(ctx context.Context, by account.Person, who account.Proof) error
	IdentitiesOf(by account.Person) []account.IdentityInfo
	Unlink(ctx context.Context, by account.Person, authority, subject string, signIn []string) error
}

// Tokens stores the tokens for asking code hosts in people's names. *account.HostTokens implements
// it.
type Tokens interface {
	Wanted() bool
	Of(ctx context.Context, kept *catalog.HostToken) (account.HostToken, error)
	Renew(ctx context.Context, kept *catalog.HostToken, account string, fence uint64, token account.HostToken) error
}

// Sealer seals what a browser carries between two requests. *oauth.Envelope implements it.
type Sealer interface {
	Seal(ctx context.Context, value any) (string, error)
	Open(ctx context.Context, text string, value any) (ours bool, err error)
}

// Deps are the other parts that a Server uses.
type Deps struct {
	Accounts  Accounts
	Tokens    Tokens
	Sealer    Sealer
	File      func() *config.File // returns the configuration in force
	Lookup    func(name string) (value string, ok bool)
	Secret    func(ctx context.Context, t config.Token) (string, error)
	Hosts     host.Tools        // for asking code hosts in people's names
	Transport http.RoundTripper // for calling providers
	BaseURL   func() string     // URL of the service, without a trailing slash
	Now       func() time.Time
	Log       *slog.Logger
}

// Server signs people in on one node. Its methods are safe for concurrent use.
type Server struct {
	d      Deps
	client *http.Client
	asking *call.Lane
	found  *directory
	proxy  oidc.KeySet // of the proxy
}

// Limits of concurrent calls to providers, for people who are still unknown.
const (
	askingAtOnce  = 16
	askingWaiting = 64
)

// New returns a Server.
func New(d Deps) *Server {
	client := newClient(d.Transport)
	return &Server{
		d: d, client: client, found: newDirectory(d.Now),
		asking: call.NewLane("sign-ins by providers", askingAtOnce, askingWaiting),
		proxy:  oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), proxyKeys),
	}
}

// provider is a configured provider with its kind.
type provider struct {
	config.IdentityProvider
	*kind
	base     string // URL without a trailing slash; "" if only the issuer is known
	audience string // of the proxy, if a variable sets it
}

// label returns the provider's display name.
func (p *provider) label() string { return cmp.Or(p.DisplayName, p.title) }

// signsIn reports whether people may sign in by it; otherwise they can only link it.
func (p *provider) signsIn() bool { return p.Purpose != "account_linking" && !p.byToken() }

// ask limits concurrent calls to providers.
func (s *Server) ask(ctx context.Context) (leave func(), err error) {
	leave, _, err = s.asking.Enter(ctx)
	return leave, err
}

// providers returns the configured providers of known kinds.
func (s *Server) providers() (all []*provider) {
	for _, x := range s.d.File().IdentityProviders {
		if k := kindNamed(x.Provider); k != nil {
			all = append(all, &provider{IdentityProvider: x, kind: k, base: strings.TrimRight(cmp.Or(x.BaseURL, k.base), "/")})
		}
	}
	if p := s.proxyOfVariables(); p != nil {
		all = append(all, p)
	}
	return all
}

// providerNamed returns a provider, or ErrNotFound.
func (s *Server) providerNamed(id string) (*provider, error) {
	for _, p := range s.providers() {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, call.Fail(call.ErrNotFound, "There is no such way to sign in.")
}

// Provider describes a provider for people.
type Provider struct {
	ID, Title string
	SignsIn   bool // otherwise people can only link it
	Required  bool // everybody must link it
	ByToken   bool // people link it by pasting a token
	ByUser    bool // together with their user name there
}

// Providers returns the providers by their names in the configuration.
func (s *Server) Providers() (all []Provider) {
	for _, p := range s.providers() {
		all = append(all, p.shown())
	}
	return all
}

// shown describes the provider for people.
func (p *provider) shown() Provider {
	return Provider{p.ID, p.label(), p.signsIn(), p.AccountLinkingRequired, p.byToken(), p.byToken() && p.asks.user}
}

// oauthConfig returns the OAuth client for a provider, with its present secrets.
func (s *Server) oauthConfig(ctx context.Context, p *provider, at *reached) (*oauth2.Config, error) {
	// Read the secrets each time, so that a change counts at once.
	id, err := s.secretValue(ctx, p.ClientID)
	if err != nil {
		return nil, err
	}
	secret, err := s.secretValue(ctx, p.ClientSecret)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: id, ClientSecret: secret, Endpoint: at.endpoint, Scopes: s.scopes(p),
		// Exactly the URL registered at the provider, which compares it.
		RedirectURL: s.d.BaseURL() + "/api/auth/callback/" + url.PathEscape(p.ID),
	}, nil
}

// callWithSecret calls a provider with this service's client secret. If the provider refuses it, and
// the secret was just changed, it calls once more with the new secret.
func (s *Server) callWithSecret(ctx context.Context, p *provider, at *reached, ask func(cfg *oauth2.Config) (*oauth2.Token, error)) (*oauth2.Token, error) {
	cfg, err := s.oauthConfig(ctx, p, at)
	if err != nil {
		return nil, err
	}
	token, err := ask(cfg)
	if !refusesClient(err) {
		return token, err
	}

	s.d.Hosts.Refused()
	fresh, failed := s.oauthConfig(ctx, p, at)
	if failed != nil || fresh.ClientID == cfg.ClientID && fresh.ClientSecret == cfg.ClientSecret {
		return token, err
	}
	return ask(fresh)
}

// refusesClient reports whether a provider refused this service's client id or secret. Gitea and
// GitHub have their own codes for that.
func refusesClient(err error) bool {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Response != nil && answer.Response.StatusCode == http.StatusUnauthorized ||
		slices.Contains([]string{"invalid_client", "unauthorized_client", "incorrect_client_credentials"}, answer.ErrorCode)
}

// secretValue returns the value of a reference in the configuration.
func (s *Server) secretValue(ctx context.Context, t *config.Token) (string, error) {
	if t == nil {
		return "", errNoSecret
	}
	return s.d.Secret(ctx, *t)
}

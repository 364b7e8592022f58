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

// Accounts is what signing in needs of accounts; *account.Identities has it.
type Accounts interface {
	Enter(ctx context.Context, who account.Proof, in account.SignIn) (*account.BegunSession, error)
	EnterWithLink(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error)
	MayLink(by account.Person) error
	Link(ctx context.Context, by account.Person, who account.Proof) error
	IdentitiesOf(by account.Person) []account.IdentityInfo
	Unlink(ctx context.Context, by account.Person, authority, subject string, signIn []string) error
}

// Tokens keeps the tokens with which code hosts are asked in the name of a person;
// *account.HostTokens implements it.
type Tokens interface {
	Wanted() bool
	Of(ctx context.Context, kept *catalog.HostToken) (account.HostToken, error)
	Renew(ctx context.Context, kept *catalog.HostToken, account string, fence uint64, token account.HostToken) error
}

// Sealer seals what a browser carries between two requests; *oauth.Envelope has it.
type Sealer interface {
	Seal(ctx context.Context, value any) (string, error)
	Open(ctx context.Context, text string, value any) (ours bool, err error)
}

// Deps is what a Server works with.
type Deps struct {
	Accounts  Accounts
	Tokens    Tokens
	Sealer    Sealer
	File      func() *config.File // the configuration in force
	Lookup    func(name string) (value string, ok bool)
	Secret    func(ctx context.Context, t config.Token) (string, error)
	Hosts     host.Tools        // by which code hosts are asked in the name of people
	Transport http.RoundTripper // by which providers are asked
	BaseURL   func() string     // of the service, without a trailing slash
	Now       func() time.Time
	Log       *slog.Logger
}

// Server signs people in at one node. Its methods are safe for concurrent use.
type Server struct {
	d      Deps
	client *http.Client
	asking *call.Lane
	found  *directory
	proxy  oidc.KeySet // of the proxy that signs who comes through it
}

// How much is asked of providers at once, for people whom nobody knows yet.
const (
	askingAtOnce  = 16
	askingWaiting = 64
)

// New makes a Server.
func New(d Deps) *Server {
	client := newClient(d.Transport)
	return &Server{
		d: d, client: client, found: newDirectory(d.Now),
		asking: call.NewLane("sign-ins by providers", askingAtOnce, askingWaiting),
		proxy:  oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), proxyKeys),
	}
}

// provider is one of the configuration, with what its kind says.
type provider struct {
	config.IdentityProvider
	*kind
	base     string // its address, without a trailing slash; "" where the issuer says it
	audience string // of the proxy, where a variable gives it
}

// title is the provider's name for people.
func (p *provider) label() string { return cmp.Or(p.DisplayName, p.title) }

// signsIn tells whether people sign in by it, and do not only link it.
func (p *provider) signsIn() bool { return p.Purpose != "account_linking" && !p.byToken() }

// ask bounds what providers are asked for people whom nobody knows yet.
func (s *Server) ask(ctx context.Context) (leave func(), err error) {
	leave, _, err = s.asking.Enter(ctx)
	return leave, err
}

// providers are those of the configuration in force that have a row.
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

// named finds a provider. It fails with ErrNotFound.
func (s *Server) named(id string) (*provider, error) {
	for _, p := range s.providers() {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, call.Fail(call.ErrNotFound, "There is no such way to sign in.")
}

// Provider is a provider as people see it.
type Provider struct {
	ID, Title string
	SignsIn   bool // people sign in by it; else they link it only
	Required  bool // everybody has to link it
	ByToken   bool // people link it with a token that they make there
	ByUser    bool // together with their name there
}

// Providers lists the providers by their names in the configuration.
func (s *Server) Providers() (all []Provider) {
	for _, p := range s.providers() {
		all = append(all, p.shown())
	}
	return all
}

// shown is the provider as people see it.
func (p *provider) shown() Provider {
	return Provider{p.ID, p.label(), p.signsIn(), p.AccountLinkingRequired, p.byToken(), p.byToken() && p.asks.user}
}

// config is what the provider is asked with, by the secrets of the moment.
func (s *Server) config(ctx context.Context, p *provider, at *reached) (*oauth2.Config, error) {
	// Read each time, so that a secret that was changed counts at once.
	id, err := s.secret(ctx, p.ClientID)
	if err != nil {
		return nil, err
	}
	secret, err := s.secret(ctx, p.ClientSecret)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: id, ClientSecret: secret, Endpoint: at.endpoint, Scopes: s.scopes(p),
		// The very address that was given at the provider, which compares it.
		RedirectURL: s.d.BaseURL() + "/api/auth/callback/" + url.PathEscape(p.ID),
	}, nil
}

// atProvider asks a provider as the client that this service is there. A secret that
// was changed a moment ago counts at once: it is asked once more with that.
func (s *Server) atProvider(ctx context.Context, p *provider, at *reached, ask func(cfg *oauth2.Config) (*oauth2.Token, error)) (*oauth2.Token, error) {
	cfg, err := s.config(ctx, p, at)
	if err != nil {
		return nil, err
	}
	token, err := ask(cfg)
	if !refusesClient(err) {
		return token, err
	}

	s.d.Hosts.Refused()
	fresh, failed := s.config(ctx, p, at)
	if failed != nil || fresh.ClientID == cfg.ClientID && fresh.ClientSecret == cfg.ClientSecret {
		return token, err
	}
	return ask(fresh)
}

// refusesClient reports whether a provider does not take this service for its client.
// Gitea has a word of its own for a secret that is wrong, and so has GitHub.
func refusesClient(err error) bool {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Response != nil && answer.Response.StatusCode == http.StatusUnauthorized ||
		slices.Contains([]string{"invalid_client", "unauthorized_client", "incorrect_client_credentials"}, answer.ErrorCode)
}

// secret is the value of a reference of the configuration.
func (s *Server) secret(ctx context.Context, t *config.Token) (string, error) {
	if t == nil {
		return "", errNoSecret
	}
	return s.d.Secret(ctx, *t)
}

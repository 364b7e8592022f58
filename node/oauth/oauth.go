package oauth

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Time limits.
const (
	pendingLife = 10 * time.Minute // how long a consent page may stay open
	codeRetry   = 30 * time.Second // within this time the same code gives the same tokens again
	catchUp     = 2 * time.Second  // to apply an entry that another node already has
)

// The scopes. Tokens of this service allow reading. Clients ask for offline_access to get a refresh
// token, which every client gets anyway.
const (
	scopeRead    = "mcp"
	scopeOffline = "offline_access"
)

// Cluster is the part of *cluster.Cluster that a Server uses. Its methods are safe for concurrent
// use.
type Cluster interface {
	// View returns the catalog as applied by this node. Changed returns a channel that is closed at
	// the next change. Age returns for how long this node may have missed changes.
	View() *catalog.View
	Changed() <-chan struct{}
	Age() time.Duration
	// Leading reports whether this node leads.
	Leading() bool
	account.Others
	// Secret returns a secret of the cluster, the same on every node. It creates a missing one.
	Secret(ctx context.Context, name string) ([]byte, error)
	// Propose changes the catalog, and returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// Await returns when this node has applied an index. Sync returns when it has applied
	// everything acknowledged before the call.
	Await(ctx context.Context, index uint64) error
	Sync(ctx context.Context) (uint64, error)
}

// Deps are the other parts that a Server uses.
type Deps struct {
	Cluster Cluster
	BaseURL func() string                             // URL of the service, without a trailing slash
	Lookup  func(name string) (value string, ok bool) // variables of the operator
	Fetch   Fetcher                                   // fetches clients' documents; nil: from the public Internet
	Now     func() time.Time
	Log     *slog.Logger
}

// Server is the authorization server of one node. Its methods are safe for concurrent use.
type Server struct {
	d         Deps
	rings     *rings
	documents *documents
}

// New returns a Server. The caller must call Run.
func New(d Deps) *Server {
	if d.Fetch == nil {
		d.Fetch = newFetcher()
	}

	// If the clock is set back, expired things must stay expired.
	d.Now = account.Later(d.Cluster, d.Now)
	return &Server{d: d, rings: newRings(d.Cluster, d.Now), documents: newDocuments(d.Fetch, d.Now)}
}

// Run creates the secrets for sealing, and drops old ones, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.rings.run(ctx, s.d.Log)
	return nil
}

// Enabled reports whether agents may be let in: tokens and codes must travel by TLS, or stay on
// this machine.
func (s *Server) Enabled() bool {
	u, err := url.Parse(s.d.BaseURL())
	if err != nil || u.Path != "" {
		return false
	}
	name := u.Hostname()
	// These names reach only this machine.
	return u.Scheme == "https" || u.Scheme == "http" && (name == "localhost" || name == "127.0.0.1" || name == "::1")
}

// Issuer returns the name of this authorization server.
func (s *Server) Issuer() string { return s.d.BaseURL() }

// Resource returns the URL of the tool server, for which tokens are valid.
func (s *Server) Resource() string { return s.d.BaseURL() + "/api/mcp" }

// Error is an OAuth error: a registered code, and a sentence for the client's developer.
type Error struct{ Code, Description string }

// Error returns the description.
func (e *Error) Error() string { return e.Description }

func newError(code, description string) *Error { return &Error{code, description} }

// The OAuth error codes in use.
const (
	invalidRequest  = "invalid_request"
	invalidClient   = "invalid_client"
	invalidGrant    = "invalid_grant"
	invalidTarget   = "invalid_target"
	invalidRedirect = "invalid_redirect_uri"
	invalidMetadata = "invalid_client_metadata"
	unsupportedType = "unsupported_response_type"
	unsupportedWay  = "unsupported_grant_type"
	accessDenied    = "access_denied"
)

// errNotReady is returned by a node that does not yet know what it needs to answer.
var errNotReady = &call.Error{Kind: call.ErrUnavailable, Message: "This node is not ready for that yet: try again in a moment.", RetryAfter: time.Second}

// checkResources checks the resources that a client names: only the tool server, the issuer, or none.
func (s *Server) checkResources(resources []string) *Error {
	// Some clients name the issuer.
	for _, r := range resources {
		if r != "" && normalURL(r) != normalURL(s.Resource()) && normalURL(r) != normalURL(s.Issuer()) {
			return newError(invalidTarget, "The resource of this service is "+s.Resource()+".")
		}
	}
	return nil
}

// normalURL returns the normal form of a URL.
func normalURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return address
	}

	// These spellings are equivalent. Many clients add a slash at the end.
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return strings.TrimSuffix(u.String(), "/")
}

// grantedScopes returns the scopes that a client gets: the one for reading, and scopeOffline if it
// requests that. It ignores others, because clients often request scopes of other services.
func grantedScopes(requested string) string {
	out := []string{scopeRead}
	if slices.Contains(strings.Fields(requested), scopeOffline) {
		out = append(out, scopeOffline)
	}
	return strings.Join(out, " ")
}

// awaitEntry waits until this node has applied the entry that a token or code contains. It returns
// errNotReady after catchUp.
func (s *Server) awaitEntry(ctx context.Context, index uint64) error {
	if s.d.Cluster.View().Index() >= index {
		return nil
	}

	// Usually it takes a moment. A node that is cut off returns an error soon.
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if err := s.d.Cluster.Await(ctx, index); err != nil {
		return errNotReady
	}
	return nil
}

// refreshGrace returns for how long the previous refresh token still gives the newest one.
func (s *Server) refreshGrace() time.Duration {
	text, _ := s.d.Lookup("SHOAL_OAUTH_REFRESH_GRACE")
	d, _ := config.RefreshGrace(text) // an invalid value gives the default
	return d
}

// codeLife returns the lifetime of a code.
func (s *Server) codeLife() time.Duration {
	return s.lifetime("OAUTH_AUTHORIZATION_CODE_TTL_SECONDS", config.CodeLife)
}

// accessLife returns the lifetime of an access token.
func (s *Server) accessLife() time.Duration {
	return s.lifetime("OAUTH_ACCESS_TOKEN_TTL_SECONDS", config.AccessTokenLife)
}

// consentLife returns the lifetime of a consent after its last refresh.
func (s *Server) consentLife() time.Duration {
	return s.lifetime("OAUTH_REFRESH_TOKEN_TTL_SECONDS", config.RefreshTokenLife)
}

// lifetime returns the time in a variable. An invalid value gives the default.
func (s *Server) lifetime(variable string, read func(string) (time.Duration, error)) time.Duration {
	text, _ := s.d.Lookup(variable)
	d, _ := read(text)
	return d
}

// splitRefusal splits the error of a proposal. code is the catalog's refusal, or 0; other is any
// other error.
func splitRefusal(err error) (code catalog.Code, other error) {
	if err == nil {
		return 0, nil
	}

	var r *catalog.Refusal
	if errors.As(err, &r) {
		return r.Code, nil
	}
	return 0, call.WriteError(err)
}

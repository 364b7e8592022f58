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

// How long things last.
const (
	pendingLife = 10 * time.Minute // a consent page that is open
	codeRetry   = 30 * time.Second // in which the same code gives the same tokens
	catchUp     = 2 * time.Second  // to apply an entry that somebody else knows of
)

// The scopes that there are. Read is what tokens of this service allow, offline
// what clients ask for that want a refresh token, which everybody gets.
const (
	scopeRead    = "mcp"
	scopeOffline = "offline_access"
)

// Cluster is what a Server takes of the agreement of nodes; *cluster.Cluster is one.
// The methods are called by many goroutines at once.
type Cluster interface {
	// View is the catalog as this node has applied it. Changed is closed when it
	// changes after the call, and Age is for how long this node may have missed changes.
	View() *catalog.View
	Changed() <-chan struct{}
	Age() time.Duration
	// Leading tells whether this node leads.
	Leading() bool
	account.Others
	// Secret is a secret of the cluster, the same on every node; it is made
	// where it is not there.
	Secret(ctx context.Context, name string) ([]byte, error)
	// Propose changes the catalog and returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// Await returns when this node has applied an index, Sync when it has applied all
	// that was confirmed before.
	Await(ctx context.Context, index uint64) error
	Sync(ctx context.Context) (uint64, error)
}

// Deps is what a Server works with.
type Deps struct {
	Cluster Cluster
	BaseURL func() string                             // of the service, without a trailing slash
	Lookup  func(name string) (value string, ok bool) // variables
	Fetch   Fetcher                                   // of clients' documents; nil means the web, with care
	Now     func() time.Time
	Log     *slog.Logger
}

// Server is the authorization server of one node. Its methods are safe for
// concurrent use.
type Server struct {
	d         Deps
	rings     *rings
	documents *documents
}

// New makes a Server. The caller must call Run.
func New(d Deps) *Server {
	if d.Fetch == nil {
		d.Fetch = newWeb()
	}

	// What has ended must not come back with a clock that is set back.
	d.Now = account.Later(d.Cluster, d.Now)
	return &Server{d: d, rings: newRings(d.Cluster, d.Now), documents: newDocuments(d.Fetch, d.Now)}
}

// Run sees to it that there are secrets to seal with, and that old ones go,
// until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.rings.run(ctx, s.d.Log)
	return nil
}

// Enabled tells whether people may sign in to agents here: tokens and codes
// travel by TLS, or do not leave the machine.
func (s *Server) Enabled() bool {
	u, err := url.Parse(s.d.BaseURL())
	if err != nil || u.Path != "" {
		return false
	}
	name := u.Hostname()
	// The names of this machine, as browsers know them: what goes there is on no network.
	return u.Scheme == "https" || u.Scheme == "http" && (name == "localhost" || name == "127.0.0.1" || name == "::1")
}

// Issuer names this authorization server, everywhere by the same letters.
func (s *Server) Issuer() string { return s.d.BaseURL() }

// Resource is what tokens are for: the address of the tool server.
func (s *Server) Resource() string { return s.d.BaseURL() + "/api/mcp" }

// Error is a refusal in the words of OAuth: a code of its registries, and a
// sentence for whoever builds the client.
type Error struct{ Code, Description string }

// Error is the sentence.
func (e *Error) Error() string { return e.Description }

func refused(code, description string) *Error { return &Error{code, description} }

// The codes of refusals that are used.
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

// errNotReady is of a node that does not know yet what it needs to answer.
var errNotReady = &call.Error{Kind: call.ErrUnavailable, Message: "This node is not ready for that yet: try again in a moment.", RetryAfter: time.Second}

// targets checks the resources that a client names: the tool server or nothing.
func (s *Server) targets(resources []string) *Error {
	// Some clients name the issuer, which stands for all that is here.
	for _, r := range resources {
		if r != "" && normal(r) != normal(s.Resource()) && normal(r) != normal(s.Issuer()) {
			return refused(invalidTarget, "The resource of this service is "+s.Resource()+".")
		}
	}
	return nil
}

// normal is an address in one of the ways to write it.
func normal(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return address
	}

	// Spellings of one and the same address; a slash at the end is what many clients add.
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return strings.TrimSuffix(u.String(), "/")
}

// granted is what of the scopes that a client asks for there is. Clients ask
// for many that others have: what is not there is left out, never refused.
func granted(asked string) string {
	// Reading is all that there is, and everybody gets it.
	out := []string{scopeRead}
	if slices.Contains(strings.Fields(asked), scopeOffline) {
		out = append(out, scopeOffline)
	}
	return strings.Join(out, " ")
}

// reach waits until this node has applied an entry that some box tells of.
func (s *Server) reach(ctx context.Context, index uint64) error {
	if s.d.Cluster.View().Index() >= index {
		return nil
	}

	// An entry takes a moment to arrive; a node that is cut off says so instead of making people wait.
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if err := s.d.Cluster.Await(ctx, index); err != nil {
		return errNotReady
	}
	return nil
}

// grace is how long the refresh token before the newest one still gives the
// newest one.
func (s *Server) grace() time.Duration {
	text, _ := s.d.Lookup("SHOAL_OAUTH_REFRESH_GRACE")
	d, _ := config.RefreshGrace(text) // one that cannot be read is the usual one
	return d
}

// codeLife is how long a code is good.
func (s *Server) codeLife() time.Duration {
	return s.life("OAUTH_AUTHORIZATION_CODE_TTL_SECONDS", config.CodeLife)
}

// accessLife is how long an access token is good.
func (s *Server) accessLife() time.Duration {
	return s.life("OAUTH_ACCESS_TOKEN_TTL_SECONDS", config.AccessTokenLife)
}

// consentLife is how long a consent is good after the last refresh.
func (s *Server) consentLife() time.Duration {
	return s.life("OAUTH_REFRESH_TOKEN_TTL_SECONDS", config.RefreshTokenLife)
}

// life is a time that a variable says. One that cannot be read is the usual one.
func (s *Server) life(variable string, read func(string) (time.Duration, error)) time.Duration {
	text, _ := s.d.Lookup(variable)
	d, _ := read(text)
	return d
}

// proposed is the outcome of a change of the catalog: what it refused, or why
// it could not be asked.
func proposed(err error) (code catalog.Code, other error) {
	if err == nil {
		return 0, nil
	}

	// A refusal is an answer, which callers tell apart; all else says that there was none.
	var r *catalog.Refusal
	if errors.As(err, &r) {
		return r.Code, nil
	}
	return 0, call.WriteError(err)
}

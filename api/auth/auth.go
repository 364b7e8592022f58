package auth

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/oauth"
)

// Keys authenticates requests; a node implements it.
type Keys interface {
	// Authenticate returns the viewer of an API key, or call.ErrUnauthenticated.
	Authenticate(ctx context.Context, key string) (catalog.Viewer, error)
	// MetricsViewer returns the viewer of a key with the role metrics; ok is false for others.
	MetricsViewer(ctx context.Context, key string) (v catalog.Viewer, ok bool)
	// SessionViewer returns the viewer of the token in a browser's cookie, or
	// call.ErrUnauthenticated.
	SessionViewer(ctx context.Context, token string) (catalog.Viewer, error)
	// AnonymousAccess reports whether requests without a credential are served.
	AnonymousAccess() bool
	// Current returns call.ErrStale if this node may not know that a credential was revoked.
	Current() error
	// OperatorBySocket reports whether a request over the operator's socket without a credential
	// counts as the operator.
	OperatorBySocket() bool
}

// Tokens authenticates the access tokens of agents.
type Tokens interface {
	// Authenticate returns the viewer of a token, or call.ErrUnauthenticated. It returns
	// call.ErrUnavailable if it cannot decide yet.
	Authenticate(ctx context.Context, token string) (catalog.Viewer, error)
}

// Authenticator finds the viewers of requests. It is safe for concurrent use.
type Authenticator struct {
	keys   Keys
	tokens Tokens
}

// New makes an Authenticator.
func New(keys Keys, tokens Tokens) *Authenticator { return &Authenticator{keys, tokens} }

// Request has the credentials of a request.
type Request struct {
	Authorization, APIKey string // values of the two headers; "" if absent
	Session               string // token in the browser's cookie; "" if absent or not accepted by the route
	Socket                bool   // it came over the operator's socket
	Tools                 bool   // it goes to the tool server, which accepts access tokens
	Metrics               bool   // it goes to the metrics, which accept keys with that role
}

// Viewer returns the viewer of a request. It refuses an invalid credential even if anonymous access
// is on, because its sender expects to be identified.
func (a *Authenticator) Viewer(ctx context.Context, r Request) (catalog.Viewer, error) {
	key, given := Credential(r.Authorization, r.APIKey)

	if given && r.Metrics {
		if v, ok := a.keys.MetricsViewer(ctx, key); ok {
			return v, nil
		}
	}

	// Refuse every other credential while this node may not know of its revocation.
	if given || r.Session != "" {
		if err := a.keys.Current(); err != nil {
			return catalog.Viewer{}, err
		}
	}

	switch {
	case !given && r.Session != "":
		return a.keys.SessionViewer(ctx, r.Session)
	case !given && r.Socket && a.keys.OperatorBySocket():
		return catalog.Operator(), nil
	case !given && a.keys.AnonymousAccess():
		return catalog.Guest(), nil
	case !given && r.Socket:
		return catalog.Viewer{}, call.Fail(call.ErrForbidden, "This host has no rights of its own (%s is false): send a key of an owner, by --key or SHOAL_API_KEY.", account.OperatorVariable)
	case !given:
		return catalog.Viewer{}, unauthenticated("Not authenticated: send an API key as `Authorization: Bearer shoal_...`.")
	case oauth.AccessWellFormed(key) && r.Tools:
		return a.tokens.Authenticate(ctx, key)
	case oauth.AccessWellFormed(key):
		return catalog.Viewer{}, unauthenticated("Not authenticated: an access token of an agent is for /api/mcp only.")
	case strings.HasPrefix(key, "sbk_"), strings.HasPrefix(key, "sourcebot-"):
		return catalog.Viewer{}, unauthenticated("Not authenticated: keys of Sourcebot are not good here. Make a new one at /settings/keys, or by `shoal key create NAME --user EMAIL`.")
	case !account.WellFormed(key):
		return catalog.Viewer{}, unauthenticated("Not authenticated: that is not an API key of this service.")
	}
	return a.keys.Authenticate(ctx, key)
}

func unauthenticated(message string) error {
	return &call.Error{Kind: call.ErrUnauthenticated, Message: message}
}

// Credential returns the key in the values of the headers Authorization and X-Sourcebot-Api-Key; ""
// for a scheme other than Bearer. given is false if both headers are empty.
func Credential(authorization, apiKey string) (key string, given bool) {
	if authorization != "" {
		scheme, rest, _ := strings.Cut(authorization, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return "", true
		}
		return strings.TrimSpace(rest), true
	}
	return strings.TrimSpace(apiKey), apiKey != ""
}

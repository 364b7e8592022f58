package auth

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/oauth"
)

// Keys is what knows the keys: a node.
type Keys interface {
	// Authenticate finds the viewer of an API key, or fails with call.ErrUnauthenticated.
	Authenticate(ctx context.Context, key string) (catalog.Viewer, error)
	// SessionViewer finds the viewer of the token in a browser's cookie, or fails
	// with call.ErrUnauthenticated.
	SessionViewer(ctx context.Context, token string) (catalog.Viewer, error)
	// AnonymousAccess reports whether requests without a credential are served.
	AnonymousAccess() bool
	// Current fails with call.ErrStale where this node may have missed that a
	// credential was revoked.
	Current() error
	// OperatorBySocket reports whether who comes by the operator's socket without a
	// credential is the operator.
	OperatorBySocket() bool
}

// Tokens is what knows the access tokens of agents that people have let in.
type Tokens interface {
	// Authenticate finds the viewer of a token, or fails with
	// call.ErrUnauthenticated, or with call.ErrUnavailable where it cannot tell yet.
	Authenticate(ctx context.Context, token string) (catalog.Viewer, error)
}

// Authenticator turns credentials into viewers. It is safe for concurrent use.
type Authenticator struct {
	keys   Keys
	tokens Tokens
}

// New makes an Authenticator.
func New(keys Keys, tokens Tokens) *Authenticator { return &Authenticator{keys, tokens} }

// Request is what a request shows of who sent it.
type Request struct {
	Authorization, APIKey string // values of the two headers, "" where one is absent
	Session               string // token in the cookie of a browser, "" without one or where it does not count
	Socket                bool   // it came over the operator's socket
	Tools                 bool   // it is for the tool server, which is what access tokens are for
}

// Viewer finds who a request runs as. A credential that is given has to be
// good: a bad one is refused also where none is needed, because whoever sends
// one expects to be somebody.
func (a *Authenticator) Viewer(ctx context.Context, r Request) (catalog.Viewer, error) {
	key, given := Credential(r.Authorization, r.APIKey)

	// What was revoked meanwhile is not known here: nobody is believed.
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
		return catalog.Viewer{}, refused("Not authenticated: send an API key as `Authorization: Bearer shoal_...`.")
	case oauth.AccessWellFormed(key) && r.Tools:
		return a.tokens.Authenticate(ctx, key)
	case oauth.AccessWellFormed(key):
		return catalog.Viewer{}, refused("Not authenticated: an access token of an agent is for /api/mcp only.")
	case strings.HasPrefix(key, "sbk_"), strings.HasPrefix(key, "sourcebot-"):
		return catalog.Viewer{}, refused("Not authenticated: keys of Sourcebot are not good here. Make a new one at /settings/keys, or by `shoal key create NAME --user EMAIL`.")
	case !account.WellFormed(key):
		return catalog.Viewer{}, refused("Not authenticated: that is not an API key of this service.")
	}
	return a.keys.Authenticate(ctx, key)
}

func refused(message string) error {
	return &call.Error{Kind: call.ErrUnauthenticated, Message: message}
}

// Credential picks the key out of the values of the Authorization and
// X-Sourcebot-Api-Key headers; given is false where there is none at all.
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

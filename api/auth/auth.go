package auth

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

// Keys is what knows the keys: a node.
type Keys interface {
	// Authenticate finds the viewer of an API key, or fails with node.ErrUnauthenticated.
	Authenticate(ctx context.Context, key string) (node.Viewer, error)
	// AnonymousAccess reports whether requests without a credential are served.
	AnonymousAccess() bool
}

// Authenticator turns credentials into viewers. It is safe for concurrent use.
type Authenticator struct {
	keys     Keys
	operator func(key string) bool
}

// New makes an Authenticator. operator recognises the operator's key; nil for none.
func New(keys Keys, operator func(key string) bool) *Authenticator {
	if operator == nil {
		operator = func(string) bool { return false }
	}
	return &Authenticator{keys, operator}
}

// Viewer finds who a request runs as from the values of its two headers, ""
// where one is absent. A credential that is given has to be good: a bad one is
// refused also where anonymous access is on, because whoever sends one expects
// to be somebody.
func (a *Authenticator) Viewer(ctx context.Context, authorization, apiKey string) (node.Viewer, error) {
	key, given := Credential(authorization, apiKey)
	switch {
	case !given && a.keys.AnonymousAccess():
		return node.Guest(), nil
	case !given:
		return node.Viewer{}, refused("Not authenticated: send an API key as `Authorization: Bearer shoal_...`.")
	case !WellFormed(key):
		return node.Viewer{}, refused("Not authenticated: that is not an API key of this service.")
	case a.operator(key):
		return node.Owner(), nil
	}
	return a.keys.Authenticate(ctx, key)
}

func refused(message string) error {
	return &node.Error{Kind: node.ErrUnauthenticated, Message: message}
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

// WellFormed reports whether key has the form of an API key: the prefix and 64
// hexadecimal digits.
func WellFormed(key string) bool {
	secret, ok := strings.CutPrefix(key, Prefix)
	if !ok || len(secret) != 64 {
		return false
	}
	return strings.Trim(secret, "0123456789abcdef") == ""
}

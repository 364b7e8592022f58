package host

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// errForeignID is the error of looking up another host's repository.
var errForeignID = errors.New("the repository is one of another host")

// addressOf parses a server's URL, without a trailing slash or the API's path, which some people
// write. An empty address means the usual one.
func addressOf(address, defaultAddress string, api ...string) (*url.URL, error) {
	if address == "" {
		address = defaultAddress
	}

	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the url of the connection cannot be read")
	}

	// Two spellings of a URL must give the same result, because ids of repositories contain it.
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	for _, suffix := range api {
		u.Path = strings.TrimSuffix(u.Path, suffix)
	}

	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// hostName returns the prefix of the names of a server's repositories: host, port and path.
func hostName(u *url.URL) string { return strings.ToLower(u.Host) + u.Path }

// externalID returns the id of a repository, which survives renames.
func externalID(kind config.Kind, server *url.URL, id string) string {
	return string(kind) + ":" + hostName(server) + ":" + id
}

// hostIDOf returns the host's own id in an external id; false if the external id belongs to another
// host.
func hostIDOf(external string, kind config.Kind, server *url.URL) (string, bool) {
	return strings.CutPrefix(external, externalID(kind, server, ""))
}

// hasFold reports whether names contain a name, ignoring case.
func hasFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// tokenOf returns a function that reads the token of a connection. For a public host without one,
// it reads the variable named fallback.
func tokenOf(t Tools, token *config.Token, fallback string, public bool) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		// A token in the configuration is never replaced by the environment's. It may have fewer
		// rights on purpose.
		if token == nil {
			if public && t.LookupEnv != nil {
				value, _ := t.LookupEnv(fallback)
				return value, nil
			}
			return "", nil
		}

		return t.secretOf(ctx, "the token of the connection", *token)
	}
}

// secretOf reads a secret. A missing secret is an error: without it, the host's answer would be
// about somebody else.
func (t *Tools) secretOf(ctx context.Context, what string, token config.Token) (string, error) {
	value, err := t.Secret(ctx, token)
	value = strings.TrimSpace(value)
	if err == nil && value == "" {
		err = fmt.Errorf("%s is empty", token)
	}
	if err != nil && ctx.Err() == nil {
		r := refusal(TokenMissing, 0, "%s cannot be read: %v", what, err)
		r.cause = err
		return "", r
	}
	return value, err
}

// withPrefix returns a function that reads an Authorization header: a prefix and a token.
func withPrefix(prefix string, secret func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		token, err := secret(ctx)
		if err != nil || token == "" {
			return "", err
		}
		return prefix + token, nil
	}
}

// budgetKey identifies a credential by its reference. So one token under two names has two budgets.
func budgetKey(token *config.Token) string {
	if token == nil {
		return ""
	}
	return token.String()
}

// toLower returns the strings in lower case.
func toLower(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, strings.ToLower(s))
	}
	return out
}

// visibilityOf returns the visibility of a repository; internal wins over private.
func visibilityOf(private, internal bool) Visibility {
	switch {
	case internal:
		return Internal
	case private:
		return Private
	}
	return Public
}

// passwordOf returns a git credential of a user and a token, or an empty one without a token.
func passwordOf(ctx context.Context, user string, token func(context.Context) (string, error)) (git.Credential, error) {
	password, err := token(ctx)
	if err != nil || password == "" {
		return git.Credential{}, err
	}
	return git.Credential{User: user, Password: password}, nil
}

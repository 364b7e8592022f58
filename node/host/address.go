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

// errForeignID is the error of a look-up of a repository of another host.
var errForeignID = errors.New("the repository is one of another host")

// addressOf reads the address of a server: without a slash at its end, and
// without the path of the API, which some write with it.
func addressOf(address, usual string, api ...string) (*url.URL, error) {
	if address == "" {
		address = usual
	}

	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the url of the connection cannot be read")
	}

	// Two ways to write one address give one: the ids of repositories hold it.
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	for _, suffix := range api {
		u.Path = strings.TrimSuffix(u.Path, suffix)
	}

	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// hostName is what the names of a server's repositories begin with: host,
// port and the path that it lies below.
func hostName(u *url.URL) string { return strings.ToLower(u.Host) + u.Path }

// externalID is the name of a repository that no rename changes.
func externalID(kind config.Kind, server *url.URL, id string) string {
	return string(kind) + ":" + hostName(server) + ":" + id
}

// numberOf is the host's own id in an external id of a host.
func numberOf(external string, kind config.Kind, server *url.URL) (string, bool) {
	return strings.CutPrefix(external, externalID(kind, server, ""))
}

// hasFold reports whether a name is one of some, upper and lower case being one.
func hasFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// tokenOf returns what reads the token of a connection. A public host without
// one is asked with the token that the environment has for it, if any.
func tokenOf(t Tools, token *config.Token, fallback string, public bool) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		// A token that the connection names is never replaced by that of the environment: it
		// may be one with fewer rights on purpose.
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

// secretOf reads a secret of a connection or an app. Without it the host is not asked: the
// answer would be about somebody else.
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

// prefixed makes a value of the Authorization header of a token.
func prefixed(prefix string, secret func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		token, err := secret(ctx)
		if err != nil || token == "" {
			return "", err
		}
		return prefix + token, nil
	}
}

// budgetKey tells credentials apart by their reference: the same token under
// two names has two budgets until the host says otherwise.
func budgetKey(token *config.Token) string {
	if token == nil {
		return ""
	}
	return token.String()
}

func lowered(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, strings.ToLower(s))
	}
	return out
}

func visibility(private, internal bool) Visibility {
	switch {
	case internal:
		return Internal
	case private:
		return Private
	}
	return Public
}

// passwordOf is a credential for git of a user and a token; none where there
// is no token.
func passwordOf(ctx context.Context, user string, token func(context.Context) (string, error)) (git.Credential, error) {
	password, err := token(ctx)
	if err != nil || password == "" {
		return git.Credential{}, err
	}
	return git.Credential{User: user, Password: password}, nil
}

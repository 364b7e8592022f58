package host

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// Bitbucket is two products with one name: Cloud and Data Center have
// different interfaces, credentials and fields.
func openBitbucket(conn config.Connection, t Tools) (Host, error) {
	if c := conn.(*config.Bitbucket); c.Deployment == config.Server {
		return openBitbucketServer(c, t)
	}
	return openBitbucketCloud(conn.(*config.Bitbucket), t)
}

// bitbucketToken is the token of a connection.
func bitbucketToken(c *config.Bitbucket, t Tools) func(context.Context) (string, error) {
	return tokenOf(t, c.Token, "", false)
}

// bitbucketAuthorization is Basic where the connection names a user, else
// Bearer: a token of a workspace, project or repository has no user.
func bitbucketAuthorization(c *config.Bitbucket, t Tools) func(context.Context) (string, error) {
	token := bitbucketToken(c, t)
	return func(ctx context.Context) (string, error) {
		secret, err := token(ctx)
		if err != nil || secret == "" {
			return "", err
		}
		if c.User == "" || c.User == "x-token-auth" {
			return "Bearer " + secret, nil
		}
		return basic(git.Credential{User: c.User, Password: secret}), nil
	}
}

// basic is the value of an Authorization header; empty without a user.
func basic(c git.Credential) string {
	if c == (git.Credential{}) {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}

// bitbucketCredential is what git sends. An API token of a user has another
// user for git than for the interface: the e-mail address does not work there.
func bitbucketCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	c := conn.(*config.Bitbucket)
	user := c.GitUser

	// What the configuration says wins; else the user that goes with the form of the token.
	switch {
	case user != "":
	case strings.Contains(c.User, "@") && c.Deployment != config.Server:
		user = "x-bitbucket-api-token-auth"
	case c.User != "":
		user = c.User
	default:
		user = "x-token-auth"
	}
	return passwordOf(ctx, user, bitbucketToken(c, t))
}

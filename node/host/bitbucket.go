package host

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
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

// cloudPages walks a list of Bitbucket Cloud, of which each page names the next.
func cloudPages[T any](ctx context.Context, c *client, first *url.URL, take func(*T) error) error {
	return c.walk(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Next   string `json:"next"`
			Values []T    `json:"values"`
		}
		if _, err := c.get(ctx, u, &page); err != nil {
			return nil, 0, err
		}
		if err := each(page.Values, take); err != nil {
			return nil, 0, err
		}

		// The address of the next page is followed as it is given: it may hold a cursor.
		if page.Next == "" {
			return nil, 0, nil
		}
		next, err := u.Parse(page.Next)
		return next, len(page.Values), err
	})
}

// serverPages walks a list of Bitbucket Data Center. A page may be short, or empty, and
// not the last: rights are taken off after a page is cut.
func serverPages[T any](ctx context.Context, c *client, first *url.URL, take func(*T) error) error {
	return c.walk(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Values []T  `json:"values"`
			Last   bool `json:"isLastPage"`
			Next   *int `json:"nextPageStart"`
		}
		if _, err := c.get(ctx, u, &page); err != nil {
			return nil, 0, err
		}
		if err := each(page.Values, take); err != nil {
			return nil, 0, err
		}

		if page.Last || page.Next == nil {
			return nil, len(page.Values), nil
		}
		next, values := *u, u.Query()
		values.Set("start", strconv.Itoa(*page.Next))
		next.RawQuery = values.Encode()
		return &next, len(page.Values), nil
	})
}

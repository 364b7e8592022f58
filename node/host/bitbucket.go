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

// openBitbucket opens one of two products: Cloud and Data Center have different APIs, credentials
// and fields.
func openBitbucket(conn config.Connection, t Tools) (Host, error) {
	if c := conn.(*config.Bitbucket); c.Deployment == config.Server {
		return openBitbucketServer(c, t)
	}
	return openBitbucketCloud(conn.(*config.Bitbucket), t)
}

// bitbucketToken returns a function that reads the connection's token.
func bitbucketToken(c *config.Bitbucket, t Tools) func(context.Context) (string, error) {
	return tokenOf(t, c.Token, "", false)
}

// bitbucketAuthorization returns a function that reads the Authorization header: Basic if the
// connection names a user, else Bearer, because tokens of a workspace, project or repository have
// no user.
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
		return basicHeader(git.Credential{User: c.User, Password: secret}), nil
	}
}

// basicHeader returns an Authorization header, or "" for an empty credential.
func basicHeader(c git.Credential) string {
	if c == (git.Credential{}) {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}

// bitbucketCredential returns the credential for git. A user's API token needs another user for git
// than for the API, which takes the e-mail address.
func bitbucketCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	c := conn.(*config.Bitbucket)
	user := c.GitUser

	// The configuration wins. Otherwise the user follows from the kind of token.
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

// cloudPages lists all pages of a Bitbucket Cloud list. Each page has the URL of the next.
func cloudPages[T any](ctx context.Context, c *client, first *url.URL, take func(*T) error) error {
	return c.walkPages(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Next   string `json:"next"`
			Values []T    `json:"values"`
		}
		if _, err := c.get(ctx, u, &page); err != nil {
			return nil, 0, err
		}
		if err := forEach(page.Values, take); err != nil {
			return nil, 0, err
		}

		// Use the next URL unchanged, because it may contain a cursor.
		if page.Next == "" {
			return nil, 0, nil
		}
		next, err := u.Parse(page.Next)
		return next, len(page.Values), err
	})
}

// serverPages lists all pages of a Bitbucket Data Center list. A page may be short or empty without
// being the last, because the server filters by permissions after paging.
func serverPages[T any](ctx context.Context, c *client, first *url.URL, take func(*T) error) error {
	return c.walkPages(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Values []T  `json:"values"`
			Last   bool `json:"isLastPage"`
			Next   *int `json:"nextPageStart"`
		}
		if _, err := c.get(ctx, u, &page); err != nil {
			return nil, 0, err
		}
		if err := forEach(page.Values, take); err != nil {
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

package signin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/account"
)

// Code hosts without OpenID Connect are asked by their own API, with the token from the sign-in.

// gitHub is the way of github.com and GitHub Enterprise Server.
type gitHub struct{}

func (gitHub) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return hostAt(p, "/login/oauth/authorize", "/login/oauth/access_token"), nil
}

// who returns who has signed in at GitHub, by the token that GitHub gave.
func (gitHub) who(ctx context.Context, s *Server, p *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// GitHub Enterprise Server has its API below its own URL.
	api := p.base + "/api/v3"
	if p.base == p.kind.base {
		api = "https://api.github.com"
	}
	var user struct {
		ID          int64
		Login, Name string
	}
	if err := s.fetchJSON(ctx, t, api+"/user", &user); err != nil {
		return who, err
	}

	// The profile may show an unconfirmed address. This list tells which are confirmed.
	var addresses []struct {
		Email             string
		Primary, Verified bool
	}
	if err := s.fetchJSON(ctx, t, api+"/user/emails", &addresses); err != nil {
		return who, err
	}

	who = account.Proof{Subject: subjectOf(user.ID), Login: user.Login, Name: user.Name}
	// Use the primary address, by which the account is known.
	for _, a := range addresses {
		if a.Primary {
			who.Email, who.Proven = a.Email, a.Verified
		}
	}
	return who, nil
}

// bitbucketCloud is the way of bitbucket.org.
type bitbucketCloud struct{}

func (bitbucketCloud) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return hostAt(p, "/site/oauth2/authorize", "/site/oauth2/access_token"), nil
}

// who returns who has signed in at Bitbucket Cloud, by the token that it gave.
func (bitbucketCloud) who(ctx context.Context, s *Server, _ *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// There is only one Bitbucket Cloud.
	const api = "https://api.bitbucket.org/2.0"
	var user struct {
		UUID        string
		Nickname    string
		DisplayName string `json:"display_name"`
	}
	if err := s.fetchJSON(ctx, t, api+"/user", &user); err != nil {
		return who, err
	}

	var addresses struct {
		Values []struct {
			Email     string
			Primary   bool `json:"is_primary"`
			Confirmed bool `json:"is_confirmed"`
		}
	}
	if err := s.fetchJSON(ctx, t, api+"/user/emails", &addresses); err != nil {
		return who, err
	}

	who = account.Proof{Subject: user.UUID, Login: user.Nickname, Name: user.DisplayName}
	// Use the primary address, and whether it is confirmed.
	for _, a := range addresses.Values {
		if a.Primary {
			who.Email, who.Proven = a.Email, a.Confirmed
		}
	}
	return who, nil
}

// bitbucketServer is the way of Bitbucket Data Center. It does not tell whether an address is
// proven. It treats an expired token as anonymous, without an error.
type bitbucketServer struct{}

func (bitbucketServer) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return hostAt(p, "/rest/oauth2/latest/authorize", "/rest/oauth2/latest/token"), nil
}

// who returns who has signed in at Bitbucket Server, by the token that it gave.
func (bitbucketServer) who(ctx context.Context, s *Server, p *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// This call returns the name of the token's owner.
	name, err := s.fetch(ctx, t, p.base+"/plugins/servlet/applinks/whoami")
	if err != nil {
		return who, err
	}
	login := strings.TrimSpace(string(name))
	// An expired token gives an empty name.
	if login == "" {
		return who, &refusal{"the token is of nobody", ""}
	}

	// Names can be reassigned, ids cannot.
	var user struct {
		ID           int64
		Name         string
		DisplayName  string
		EmailAddress string
	}
	if err := s.fetchJSON(ctx, t, p.base+"/rest/api/1.0/users/"+url.PathEscape(login), &user); err != nil {
		return who, err
	}
	return account.Proof{Subject: subjectOf(user.ID), Login: user.Name, Name: user.DisplayName, Email: user.EmailAddress}, nil
}

// hostAt returns the endpoints of a code host. Its URL is its authority.
func hostAt(p *provider, authorize, token string) *reached {
	return &reached{authority: p.base, endpoint: oauth2.Endpoint{
		AuthURL: p.base + authorize, TokenURL: p.base + token, AuthStyle: oauth2.AuthStyleInParams,
	}}
}

// subjectOf returns an id as a subject, or "" for 0.
func subjectOf(id int64) string {
	if id <= 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// fetchJSON fetches JSON from a host.
func (s *Server) fetchJSON(ctx context.Context, t *oauth2.Token, address string, out any) error {
	body, err := s.fetch(ctx, t, address)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}

func (s *Server) fetch(ctx context.Context, t *oauth2.Token, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}

	// Send the token only in the header: URLs are logged.
	t.SetAuthHeader(req)
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	// The client's transport limits the size.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}

	// Report only the status: the body may repeat the request.
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return body, nil
}

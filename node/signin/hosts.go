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

// Code hosts that do not speak OpenID Connect are asked, with the token that
// somebody got there, who that is.

// gitHub is the way of github.com and of GitHub Enterprise Server.
type gitHub struct{}

func (gitHub) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return hostAt(p, "/login/oauth/authorize", "/login/oauth/access_token"), nil
}

func (gitHub) who(ctx context.Context, s *Server, p *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// GitHub Enterprise Server has its API below its own address.
	api := p.base + "/api/v3"
	if p.base == p.kind.base {
		api = "https://api.github.com"
	}
	var user struct {
		ID          int64
		Login, Name string
	}
	if err := s.read(ctx, t, api+"/user", &user); err != nil {
		return who, err
	}

	// The profile shows an address that may not be confirmed; this list says which are.
	var addresses []struct {
		Email             string
		Primary, Verified bool
	}
	if err := s.read(ctx, t, api+"/user/emails", &addresses); err != nil {
		return who, err
	}

	who = account.Proof{Subject: number(user.ID), Login: user.Login, Name: user.Name}
	// Only the primary one: by that the account is known there.
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

func (bitbucketCloud) who(ctx context.Context, s *Server, _ *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// Bitbucket Cloud alone has this way, so that the address is no setting.
	const api = "https://api.bitbucket.org/2.0"
	var user struct {
		UUID        string
		Nickname    string
		DisplayName string `json:"display_name"`
	}
	if err := s.read(ctx, t, api+"/user", &user); err != nil {
		return who, err
	}

	var addresses struct {
		Values []struct {
			Email     string
			Primary   bool `json:"is_primary"`
			Confirmed bool `json:"is_confirmed"`
		}
	}
	if err := s.read(ctx, t, api+"/user/emails", &addresses); err != nil {
		return who, err
	}

	who = account.Proof{Subject: user.UUID, Login: user.Nickname, Name: user.DisplayName}
	// As at GitHub: the primary one, and whether it is confirmed.
	for _, a := range addresses.Values {
		if a.Primary {
			who.Email, who.Proven = a.Email, a.Confirmed
		}
	}
	return who, nil
}

// bitbucketServer is the way of Bitbucket Data Center. It says nothing of whether
// an address is proven, and takes a token that has ended for nobody in
// particular, without an error.
type bitbucketServer struct{}

func (bitbucketServer) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return hostAt(p, "/rest/oauth2/latest/authorize", "/rest/oauth2/latest/token"), nil
}

func (bitbucketServer) who(ctx context.Context, s *Server, p *provider, _ *reached, t *oauth2.Token, _ string) (who account.Proof, err error) {
	// This is the way by which the host tells whose a token is; it answers with a name alone.
	name, err := s.fetch(ctx, t, p.base+"/plugins/servlet/applinks/whoami")
	if err != nil {
		return who, err
	}
	login := strings.TrimSpace(string(name))
	// A token that has ended is no error there.
	if login == "" {
		return who, &refusal{"the token is of nobody", ""}
	}

	// A name can be given to somebody else later; the number that it has now cannot.
	var user struct {
		ID           int64
		Name         string
		DisplayName  string
		EmailAddress string
	}
	if err := s.read(ctx, t, p.base+"/rest/api/1.0/users/"+url.PathEscape(login), &user); err != nil {
		return who, err
	}
	return account.Proof{Subject: number(user.ID), Login: user.Name, Name: user.DisplayName, Email: user.EmailAddress}, nil
}

// hostAt is where a code host is asked, whose address names it.
func hostAt(p *provider, authorize, token string) *reached {
	return &reached{authority: p.base, endpoint: oauth2.Endpoint{
		AuthURL: p.base + authorize, TokenURL: p.base + token, AuthStyle: oauth2.AuthStyleInParams,
	}}
}

// number is an id as a subject; 0 is nobody.
func number(id int64) string {
	if id <= 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// read asks a host for something in JSON.
func (s *Server) read(ctx context.Context, t *oauth2.Token, address string, out any) error {
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

	// Only the header: an address stands in logs.
	t.SetAuthHeader(req)
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	// Bounded by the client's transport.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}

	// Only the status: the body may repeat what it was sent.
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return body, nil
}

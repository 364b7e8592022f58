package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// The ways in which a client is known.
const (
	Registered = "registered" // it registered itself; nothing is verified
	Document   = "document"   // by a document at the URL that is its id; it belongs to the owner of the URL
	ByOwner    = "owner"      // an owner of this service registered it
)

// Client is a program that asks for access.
type Client struct {
	ID        string
	Name      string
	Redirects []string
	Kind      string
}

// hash returns a hash of the client's id, which may be long.
func (c *Client) hash() []byte {
	sum := sha256.Sum256([]byte(c.ID))
	return sum[:]
}

// clientID is the content of a registered client's id.
type clientID struct {
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
	Kind      string   `json:"k"`
	Issued    int64    `json:"i"`
}

// Registration is the request of a client to register (RFC 7591). Other members are ignored.
type Registration struct {
	RedirectURIs    []string `json:"redirect_uris"`
	Name            string   `json:"client_name,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	ResponseTypes   []string `json:"response_types,omitempty"`
	AuthMethod      string   `json:"token_endpoint_auth_method,omitempty"`
	Scope           string   `json:"scope,omitempty"`
}

// RegistrationAnswer is the accepted registration.
type RegistrationAnswer struct {
	ClientID string `json:"client_id"`
	Issued   int64  `json:"client_id_issued_at"`
	Registration
}

// maxClientName limits names of clients, in bytes.
const maxClientName = 64

// Register returns the id for a client. Nothing is stored: the id is the sealed registration.
func (s *Server) Register(ctx context.Context, body []byte) (*RegistrationAnswer, error) {
	var r Registration
	if err := json.Unmarshal(body, &r); err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, newError(invalidMetadata, "The body has to be a JSON object with redirect_uris, an array of strings.")
	}
	return s.register(ctx, r, Registered)
}

// RegisterFor returns the id for a client that an owner registers.
func (s *Server) RegisterFor(ctx context.Context, _ account.Owner, name string, redirects []string) (*RegistrationAnswer, error) {
	// Report bad URLs instead of dropping them.
	for _, uri := range redirects {
		if !goodRedirect(uri) {
			return nil, call.Fail(call.ErrInvalid, "a client cannot be sent to %q: use https, a program's own scheme, or http to localhost, 127.0.0.1 or [::1]", uri)
		}
	}
	if len(redirects) == 0 {
		return nil, call.Fail(call.ErrInvalid, "a client needs one redirect address at least")
	}

	// Translate the error into one of this service's API.
	got, err := s.register(ctx, Registration{Name: name, RedirectURIs: redirects}, ByOwner)
	var refusal *Error
	if errors.As(err, &refusal) {
		return nil, call.Fail(call.ErrInvalid, "%s", refusal.Description)
	}
	return got, err
}

// register checks a registration and returns the sealed client id.
func (s *Server) register(ctx context.Context, r Registration, kind string) (*RegistrationAnswer, error) {
	// Drop bad URLs: some clients list every URL that any of their versions has used.
	redirects := goodRedirects(r.RedirectURIs)
	if len(redirects) == 0 {
		return nil, newError(invalidRedirect, "No address in redirect_uris can be used: each is https, a program's own scheme, or http to localhost, 127.0.0.1 or [::1], without a fragment.")
	}
	if kind != ByOwner && !s.hostsAllowed(redirectHosts(redirects)...) {
		return nil, newError(invalidRedirect, "Clients with these addresses are not let in here.")
	}

	// Without a name, use its host, which is at least true.
	name := cleanName(r.Name)
	if name == "" {
		name = redirectHost(redirects[0])
	}
	issued := s.d.Now().Unix()
	id, err := s.rings.seal(ctx, clientBox, clientID{name, redirects, kind, issued})
	if err != nil {
		return nil, err
	}

	out := Registration{
		RedirectURIs: redirects, Name: name, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, AuthMethod: "none", Scope: grantedScopes(r.Scope),
	}
	if r.ApplicationType == "native" || r.ApplicationType == "web" {
		out.ApplicationType = r.ApplicationType
	}
	return &RegistrationAnswer{ClientID: id, Issued: issued, Registration: out}, nil
}

// cleanName makes a name safe to show on a page: short, on one line, without invisible characters.
func cleanName(name string) string {
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError || unicode.IsSpace(r) }), " ")
	for len(name) > maxClientName {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return strings.TrimSpace(name)
}

// findClient returns a client by its id. account is the signed-in account for which a document may be
// fetched.
func (s *Server) findClient(ctx context.Context, id, account string) (*Client, error) {
	// An id is either a URL or a sealed registration.
	if isDocument(id) {
		return s.clientByDocument(ctx, id, account)
	}

	var said clientID
	// It was sealed here, so its content was checked at the registration.
	switch err := s.rings.open(ctx, clientBox, id, &said); {
	case errors.Is(err, errNotSealed):
		return nil, newError(invalidClient, "The client is not known here: it has to register again.")
	case err != nil:
		return nil, err
	}

	// Check again: the operator may have restricted hosts since then.
	if !s.hostsAllowed(redirectHosts(said.Redirects)...) && said.Kind != ByOwner {
		return nil, newError(invalidClient, "This client is not let in here.")
	}
	return &Client{ID: id, Name: said.Name, Redirects: said.Redirects, Kind: said.Kind}, nil
}

func redirectHosts(uris []string) (hosts []string) {
	for _, uri := range uris {
		hosts = append(hosts, redirectHost(uri))
	}
	return hosts
}

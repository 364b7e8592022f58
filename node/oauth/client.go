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
	Registered = "registered" // by itself: nobody has checked anything
	Document   = "document"   // by a document at the address that is its id: it is of whoever has the address
	ByOwner    = "owner"      // by an owner of this service
)

// Client is a program that asks to be let in.
type Client struct {
	ID        string
	Name      string
	Redirects []string
	Kind      string
}

// hash stands for the id of a client, which may be long.
func (c *Client) hash() []byte {
	sum := sha256.Sum256([]byte(c.ID))
	return sum[:]
}

// clientID is what the id of a registered client says.
type clientID struct {
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
	Kind      string   `json:"k"`
	Issued    int64    `json:"i"`
}

// Registration is what a client says of itself (RFC 7591). Other members are
// not looked at.
type Registration struct {
	RedirectURIs    []string `json:"redirect_uris"`
	Name            string   `json:"client_name,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	ResponseTypes   []string `json:"response_types,omitempty"`
	AuthMethod      string   `json:"token_endpoint_auth_method,omitempty"`
	Scope           string   `json:"scope,omitempty"`
}

// RegistrationAnswer is what the service has taken of it.
type RegistrationAnswer struct {
	ClientID string `json:"client_id"`
	Issued   int64  `json:"client_id_issued_at"`
	Registration
}

// Bounds of names.
const maxClientName = 64

// Register makes the id of a client of what it says of itself. Nothing is kept:
// the id is the description, sealed.
func (s *Server) Register(ctx context.Context, body []byte) (*RegistrationAnswer, error) {
	var r Registration
	if err := json.Unmarshal(body, &r); err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, refused(invalidMetadata, "The body has to be a JSON object with redirect_uris, an array of strings.")
	}
	return s.register(ctx, r, Registered)
}

// RegisterFor makes the id of a client that an owner knows.
func (s *Server) RegisterFor(ctx context.Context, _ account.Owner, name string, redirects []string) (*RegistrationAnswer, error) {
	// Nothing is dropped here: an owner is told which one is wrong.
	for _, uri := range redirects {
		if !goodRedirect(uri) {
			return nil, call.Fail(call.ErrInvalid, "a client cannot be sent to %q: use https, a program's own scheme, or http to localhost, 127.0.0.1 or [::1]", uri)
		}
	}
	if len(redirects) == 0 {
		return nil, call.Fail(call.ErrInvalid, "a client needs one redirect address at least")
	}

	// What is wrong with it is told in the words of this service's own interface.
	got, err := s.register(ctx, Registration{Name: name, RedirectURIs: redirects}, ByOwner)
	var refusal *Error
	if errors.As(err, &refusal) {
		return nil, call.Fail(call.ErrInvalid, "%s", refusal.Description)
	}
	return got, err
}

func (s *Server) register(ctx context.Context, r Registration, kind string) (*RegistrationAnswer, error) {
	// A bad address among good ones is dropped: some clients name every one that
	// any of their versions has used.
	kept := goodRedirects(r.RedirectURIs)
	if len(kept) == 0 {
		return nil, refused(invalidRedirect, "No address in redirect_uris can be used: each is https, a program's own scheme, or http to localhost, 127.0.0.1 or [::1], without a fragment.")
	}
	if kind != ByOwner && !s.allowed(redirectHosts(kept)...) {
		return nil, refused(invalidRedirect, "Clients with these addresses are not let in here.")
	}

	// Without a name it goes by where it is: that at least is true.
	name := cleanName(r.Name)
	if name == "" {
		name = redirectHost(kept[0])
	}
	issued := s.d.Now().Unix()
	id, err := s.rings.seal(ctx, clientBox, clientID{name, kept, kind, issued})
	if err != nil {
		return nil, err
	}

	out := Registration{
		RedirectURIs: kept, Name: name, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, AuthMethod: "none", Scope: granted(r.Scope),
	}
	if r.ApplicationType == "native" || r.ApplicationType == "web" {
		out.ApplicationType = r.ApplicationType
	}
	return &RegistrationAnswer{ClientID: id, Issued: issued, Registration: out}, nil
}

// cleanName is a name that can stand on a page: short, on one line, and with
// nothing that turns or hides the letters around it.
func cleanName(name string) string {
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError || unicode.IsSpace(r) }), " ")
	// By whole characters, so that the end of a name is none of another kind.
	for len(name) > maxClientName {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return strings.TrimSpace(name)
}

// client finds a client by its id. Fetching a document is for somebody who is
// signed in only.
func (s *Server) client(ctx context.Context, id, account string) (*Client, error) {
	// An id says itself what it is: an address, or a box.
	if isDocument(id) {
		return s.document(ctx, id, account)
	}

	var said clientID
	// It was sealed here, so that it says what was checked when it registered.
	switch err := s.rings.open(ctx, clientBox, id, &said); {
	case errors.Is(err, errBox):
		return nil, refused(invalidClient, "The client is not known here: it has to register again.")
	case err != nil:
		return nil, err
	}

	// Once more, since the operator may have named hosts after it registered.
	if !s.allowed(redirectHosts(said.Redirects)...) && said.Kind != ByOwner {
		return nil, refused(invalidClient, "This client is not let in here.")
	}
	return &Client{ID: id, Name: said.Name, Redirects: said.Redirects, Kind: said.Kind}, nil
}

func redirectHosts(uris []string) (hosts []string) {
	for _, uri := range uris {
		hosts = append(hosts, redirectHost(uri))
	}
	return hosts
}

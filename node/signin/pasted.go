package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
)

// pasted is the way of code hosts where people create a token and paste it here. It cannot sign
// people in.
type pasted struct{}

func (pasted) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return nil, call.Fail(call.ErrInvalid, "%s is linked with a token that you make there.", p.label())
}

func (pasted) who(context.Context, *Server, *provider, *reached, *oauth2.Token, string) (account.Proof, error) {
	return account.Proof{}, mistake("it sends nobody back")
}

// byToken reports whether people link the provider by pasting a token.
func (p *provider) byToken() bool { return p.way == pasted{} }

// Shown is a token that a person pastes to link their identity.
type Shown struct {
	Provider string // name in the configuration
	User     string // the person's user name there, if the host needs it
	Token    string
	By       account.Person
}

// Limits of a pasted token.
const (
	maxToken    = 4096             // bytes
	tokenTime   = 15 * time.Second // for the host to tell the token's owner
	maxUserName = 200              // bytes of a name
)

// LinkByToken asks a code host who owns a token, links that identity to a person, and stores the
// token for asking the host. It returns ErrInvalid if the host refuses the token, ErrForbidden if
// tokens are not used here, and ErrUnavailable if the host cannot be reached.
func (s *Server) LinkByToken(ctx context.Context, x Shown) error {
	// Cheap checks first.
	p, err := s.providerNamed(x.Provider)
	if err != nil {
		return err
	}
	if !p.byToken() {
		return call.Fail(call.ErrInvalid, "%s is not linked with a token.", p.label())
	}
	if err := s.d.Accounts.MayLink(x.By); err != nil {
		return err
	}

	// Do not store a token that is never used.
	if !s.d.Tokens.Wanted() {
		return call.Fail(call.ErrForbidden, "Code hosts are not asked here what people may read: a token of yours would not be used.")
	}
	token := account.HostToken{Access: strings.TrimSpace(x.Token), User: strings.TrimSpace(x.User)}
	if err := checkTokenForm(token, p.asks.user); err != nil {
		return err
	}

	// Limit calls to hosts, as for sign-ins.
	leave, err := s.ask(ctx)
	if err != nil {
		return err
	}
	defer leave()

	subject, err := s.tokenOwner(ctx, p, token)
	// Tell the person if the host refuses the token: they can give another one.
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.RefusesPerson() {
		return call.Fail(call.ErrInvalid, "%s does not take that token: it may be mistyped, have ended, or not allow reading code.", p.label())
	}
	if err != nil {
		return s.logFailure(p, err)
	}
	return s.d.Accounts.Link(ctx, x.By, account.Proof{
		Method: p.ID, Title: p.label(), Authority: p.base, Subject: subject, Login: token.User, Token: &token,
	})
}

// checkTokenForm returns an error for a malformed token or user name.
func checkTokenForm(t account.HostToken, named bool) error {
	// Both go into a header, where blanks and line breaks are dangerous.
	isUnsafe := func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) }
	if t.Access == "" || len(t.Access) > maxToken || strings.ContainsFunc(t.Access, isUnsafe) {
		return call.Fail(call.ErrInvalid, "That is no token: it is one word of at most %d bytes.", maxToken)
	}

	// The name and the token are joined by a colon.
	if named && (t.User == "" || len(t.User) > maxUserName || strings.ContainsFunc(t.User, isUnsafe) || strings.Contains(t.User, ":")) {
		return call.Fail(call.ErrInvalid, "Your user name there is needed too: one word without a colon.")
	}
	return nil
}

// tokenOwner asks the host who owns a token.
func (s *Server) tokenOwner(ctx context.Context, p *provider, token account.HostToken) (subject string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	own, err := p.asks.open(s.person(p, "", token), s.d.Hosts)
	if err != nil {
		return "", err
	}
	if subject, err = own.Who(ctx); err != nil {
		return "", fmt.Errorf("ask whose the token is: %w", err)
	}
	return subject, nil
}

// person returns the identity and token for asking a code host.
func (s *Server) person(p *provider, subject string, token account.HostToken) host.Person {
	return host.Person{Address: p.base, Subject: subject, Token: token.Access, User: token.User, Within: s.organisations(p)}
}

// organisations returns the organisations of an Azure DevOps that connections name.
func (s *Server) organisations(p *provider) (names []string) {
	// A token is valid only in some organisations, which cannot be listed. Try those that are
	// indexed here.
	for _, c := range s.d.File().Connections {
		conn, ok := c.(*config.AzureDevOps)
		if !ok || !sameHost(conn, p.base) {
			continue
		}
		names = append(names, conn.Orgs...)
		// The first part of a path is the organisation.
		for _, path := range slices.Concat(conn.Projects, conn.Repos) {
			org, _, _ := strings.Cut(path, "/")
			names = append(names, org)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sameHost reports whether a connection uses the Azure DevOps at a URL.
func sameHost(conn *config.AzureDevOps, address string) bool {
	at := strings.TrimRight(conn.URL, "/")
	// The default is the cloud.
	if at == "" {
		at = kindNamed("azure-devops").base
	}

	// As the connection itself does.
	if conn.UseTFSPath && !strings.HasSuffix(at, "/tfs") {
		at += "/tfs"
	}
	return strings.EqualFold(at, address)
}

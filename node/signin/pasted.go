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

// pasted is the way of code hosts at which people make a token and show it here.
// Nobody signs in by them.
type pasted struct{}

func (pasted) reach(_ context.Context, _ *Server, p *provider) (*reached, error) {
	return nil, call.Fail(call.ErrInvalid, "%s is linked with a token that you make there.", p.label())
}

func (pasted) who(context.Context, *Server, *provider, *reached, *oauth2.Token, string) (account.Proof, error) {
	return account.Proof{}, mistake("it sends nobody back")
}

// byToken tells whether people link a provider with a token that they make there.
func (p *provider) byToken() bool { return p.way == pasted{} }

// Shown is a token that somebody made at a code host, to link who they are there.
type Shown struct {
	Provider string // its name in the configuration
	User     string // the person's name there, where the host asks for one
	Token    string
	By       account.Person
}

// Bounds of a token that is shown.
const (
	mostToken  = 4096             // bytes
	tokenTime  = 15 * time.Second // for the host to say whose it is
	mostPerson = 200              // bytes of a name
)

// LinkByToken asks a code host whose a token is, links that to a person, and keeps
// the token, with which the host is asked what they may read. It fails with
// ErrInvalid where the host does not take the token, with ErrForbidden where it
// would not be used, and with ErrUnavailable where the host cannot be asked.
func (s *Server) LinkByToken(ctx context.Context, x Shown) error {
	// The cheap checks before the host is asked.
	p, err := s.named(x.Provider)
	if err != nil {
		return err
	}
	if !p.byToken() {
		return call.Fail(call.ErrInvalid, "%s is not linked with a token.", p.label())
	}
	if err := s.d.Accounts.MayLink(x.By); err != nil {
		return err
	}

	// A token that nothing asks with would only lie there.
	if !s.d.Tokens.Wanted() {
		return call.Fail(call.ErrForbidden, "Code hosts are not asked here what people may read: a token of yours would not be used.")
	}
	token := account.HostToken{Access: strings.TrimSpace(x.Token), User: strings.TrimSpace(x.User)}
	if err := goodToken(token, p.asks.user); err != nil {
		return err
	}

	// Bounded as a sign-in is, since a host is asked on somebody's word.
	leave, err := s.ask(ctx)
	if err != nil {
		return err
	}
	defer leave()

	subject, err := s.whose(ctx, p, token)
	// A refusal is about the token, and the person can mend it; all else is the host's.
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.RefusesPerson() {
		return call.Fail(call.ErrInvalid, "%s does not take that token: it may be mistyped, have ended, or not allow reading code.", p.label())
	}
	if err != nil {
		return s.failed(p, err)
	}
	return s.d.Accounts.Link(ctx, x.By, account.Proof{
		Method: p.ID, Title: p.label(), Authority: p.base, Subject: subject, Login: token.User, Token: &token,
	})
}

// goodToken refuses what cannot be a token, or the name that goes with it.
func goodToken(t account.HostToken, named bool) error {
	// Both go into a header, where a blank or a line break would begin something else.
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) }
	if t.Access == "" || len(t.Access) > mostToken || strings.ContainsFunc(t.Access, odd) {
		return call.Fail(call.ErrInvalid, "That is no token: it is one word of at most %d bytes.", mostToken)
	}

	// The name and the token stand in one word, parted by a colon.
	if named && (t.User == "" || len(t.User) > mostPerson || strings.ContainsFunc(t.User, odd) || strings.Contains(t.User, ":")) {
		return call.Fail(call.ErrInvalid, "Your user name there is needed too: one word without a colon.")
	}
	return nil
}

// whose asks a host whose a token is.
func (s *Server) whose(ctx context.Context, p *provider, token account.HostToken) (subject string, err error) {
	// The host is one that a person waits for.
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

// person is somebody as a code host is asked in their name.
func (s *Server) person(p *provider, subject string, token account.HostToken) host.Person {
	return host.Person{Address: p.base, Subject: subject, Token: token.Access, User: token.User, Within: s.organisations(p)}
}

// organisations are those of an Azure DevOps that connections name.
func (s *Server) organisations(p *provider) (names []string) {
	// A token is good in some organisations only, and there is no list of them: those that are
	// indexed here matter.
	for _, c := range s.d.File().Connections {
		conn, ok := c.(*config.AzureDevOps)
		if !ok || !sameHost(conn, p.base) {
			continue
		}
		names = append(names, conn.Orgs...)
		// The organisation is the first part of a path.
		for _, path := range slices.Concat(conn.Projects, conn.Repos) {
			org, _, _ := strings.Cut(path, "/")
			names = append(names, org)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sameHost tells whether a connection is to the Azure DevOps at an address.
func sameHost(conn *config.AzureDevOps, address string) bool {
	at := strings.TrimRight(conn.URL, "/")
	// The configuration may leave out the address of the cloud.
	if at == "" {
		at = kindNamed("azure-devops").base
	}

	// As the connection itself builds it.
	if conn.UseTFSPath && !strings.HasSuffix(at, "/tfs") {
		at += "/tfs"
	}
	return strings.EqualFold(at, address)
}

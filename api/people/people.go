// Package people has the pages on which people sign in and out and manage their own account, and on
// which owners manage the accounts of others.
//
//	/login, /logout      by e-mail address and password, or with an API key
//	/join                with a link that works once
//	/api/auth/callback/… back from an identity provider
//	/settings/account    one's password, providers, where one is signed in
//	/settings/people     accounts: invite, approve, suspend, change    owners
//	/settings/rights     why an account sees a repository, or does not  owners
//
// Pages call the same methods as the routes of the API. A secret is shown once, in the answer to
// the form that made it.
package people

import (
	"context"
	"embed"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/signin"
)

//go:embed templates
var templates embed.FS

// Sessions begins and ends sessions.
type Sessions interface {
	SessionViewer(ctx context.Context, token string) (catalog.Viewer, error)
	BeginWithKey(ctx context.Context, key string, in account.SignIn) (*account.BegunSession, error)
	EndSession(ctx context.Context, token string) error
	SessionsOf(ctx context.Context, by account.Holder, user string) ([]account.SessionInfo, error)
	EndSessions(ctx context.Context, by account.Holder, user, which string) (int, error)
}

// Passwords signs in by password and by link.
type Passwords interface {
	ByPassword() bool
	BeginWithPassword(ctx context.Context, email, password string, in account.SignIn) (*account.BegunSession, error)
	LinkOwner(ctx context.Context, token string) (*account.UserInfo, error)
	BeginWithLink(ctx context.Context, token, password string, in account.SignIn) (*account.BegunSession, error)
	ChangePassword(ctx context.Context, by account.Person, old, password, address string) error
	SetPassword(context.Context, account.Owner, account.SetPasswordRequest) (*account.UserInfo, error)
	NewLink(ctx context.Context, by account.Owner, req account.NewLinkRequest) (*account.NewLink, error)
}

// Providers signs in by identity providers.
type Providers interface {
	Providers() []signin.Provider
	Begin(ctx context.Context, req signin.Start) (*signin.Begun, error)
	Finish(ctx context.Context, b signin.Back) (*signin.Finished, error)
	LinkByToken(ctx context.Context, x signin.Shown) error
	Linked(ctx context.Context, by account.Person) []signin.Linked
	Unlink(ctx context.Context, by account.Person, authority, subject string) error

	// Missing lists the accounts that a signed-in viewer must link before anything else.
	Missing(v catalog.Viewer) (titles []string)
}

// Accounts creates and changes accounts and their grants.
type Accounts interface {
	CreateUser(context.Context, account.Owner, account.CreateUserRequest) (*account.UserInfo, error)
	Users(context.Context, account.Owner) ([]account.UserInfo, error)
	ChangeUser(context.Context, account.Owner, account.ChangeUserRequest) (*account.UserInfo, error)
	DeleteUser(context.Context, account.Owner, string) (*account.UserInfo, error)
	Grant(context.Context, account.Owner, account.GrantRequest) (*account.GrantResponse, error)
	Why(ctx context.Context, by account.Owner, user, repo string) (*account.WhyResponse, error)
}

// Deps are the parts that the pages use. Parts of *node.Node implement the interfaces.
type Deps struct {
	Sessions  Sessions
	Passwords Passwords
	Providers Providers
	Accounts  Accounts
	Base      func() string // prefix of links that people use outside of this site
	Now       func() time.Time
}

// Pages answers requests for pages. It is safe for concurrent use.
type Pages struct{ Deps }

// New makes the pages.
func New(d Deps) *Pages { return &Pages{d} }

// Route is a page with its address.
type Route struct {
	Path, Method string
	Timeout      time.Duration
	Open         bool // also for people who are not signed in
	Handle       layout.Handler
}

const (
	quick = 10 * time.Second
	slow  = time.Minute // as long as a change may wait for a leader
)

// Routes returns the table of pages.
func (p *Pages) Routes() []Route {
	// Pages that change something, or list what must be complete, may wait for a leader: these are slow.
	return []Route{
		{"/login", "GET", quick, true, p.login},
		{"/login", "POST", slow, true, p.signIn},
		{"/logout", "POST", slow, true, p.signOut},
		{"/api/auth/callback/{provider}", "GET", slow, true, p.callback},
		{"/join", "GET", quick, true, p.join},
		{"/join", "POST", slow, true, p.finishJoin},
		{"/settings/account", "GET", quick, false, p.showAccount},
		{"/settings/account", "POST", slow, false, p.changeOwn},
		{"/settings/people", "GET", slow, false, p.showMembersList},
		{"/settings/people", "POST", slow, false, p.changeMember},
		{"/settings/rights", "GET", quick, false, p.rights},
	}
}

// CookieName returns the name of the session cookie. With TLS it has the prefix __Host-, which browsers
// accept only if this host itself sets the cookie.
func CookieName(secure bool) string {
	if secure {
		return "__Host-shoal"
	}
	return "shoal"
}

// sessionToken returns the session token in the browser's cookie; "" without one.
func sessionToken(v *layout.Visit) string { return v.Cookie(CookieName(v.Secure)) }

// setCookie sets the session cookie for the time life; 0 removes it.
func setCookie(v *layout.Visit, token string, life time.Duration) {
	setNamedCookie(v, CookieName(v.Secure), token, life)
}

// setNamedCookie sets a cookie that scripts cannot read, for the time life; 0 removes it.
func setNamedCookie(v *layout.Visit, name, value string, life time.Duration) {
	// Browsers do not send a Secure cookie without TLS.
	secure := ""
	if v.Secure {
		secure = "; Secure"
	}
	v.Set("Set-Cookie", name+"="+value+"; Path=/; HttpOnly; SameSite=Lax; Max-Age="+strconv.Itoa(int(life.Seconds()))+secure)
}

// startSession sets the cookie of a new session, and redirects to next.
func (p *Pages) startSession(v *layout.Visit, begun *account.BegunSession, next string) error {
	setCookie(v, begun.Token, begun.Expires.Sub(p.Now()))
	return v.Redirect(303, localAddress(next))
}

// signInOf describes the browser that signs in.
func signInOf(v *layout.Visit) account.SignIn {
	return account.SignIn{Address: v.Address, Agent: v.Sent("User-Agent"), Instead: sessionToken(v)}
}

// localAddress returns next if browsers surely take it for an address of this site, otherwise /.
func localAddress(next string) string {
	if len(next) < 2 || next[0] != '/' || next[1] == '/' || next[1] == '\\' || strings.ContainsAny(next, "\r\n\t") {
		return "/"
	}
	return next
}

// when formats a time relative to now.
func (p *Pages) when(t time.Time) layout.When { return layout.At(p.Now(), t) }

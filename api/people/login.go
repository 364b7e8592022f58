package people

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/signin"
)

var (
	loginTemplate = layout.Parse(templates, "templates/login.html")
	joinTemplate  = layout.Parse(templates, "templates/join.html")
)

type loginPage struct {
	Next, Wrong, Email string
	Password           bool // passwords are enabled
	Providers          []signin.Provider
}

// login shows the form for signing in. It removes the cookie of an expired session, which all pages
// refuse, even those that guests may see.
func (p *Pages) login(ctx context.Context, v *layout.Visit) error {
	if token := sessionToken(v); token != "" {
		if _, err := p.Sessions.SessionViewer(ctx, token); errors.Is(err, call.ErrUnauthenticated) {
			setCookie(v, "", 0)
		}
	}
	return p.showLogin(v, v.Query.Get("next"), "", "")
}

func (p *Pages) showLogin(v *layout.Visit, next, email, wrong string) error {
	return v.Show(layout.Head{Title: "Sign in", Page: "login"}, loginTemplate, loginPage{next, wrong, email, p.Passwords.ByPassword(), p.signInBy()})
}

// signIn begins a session for a valid key, or a valid e-mail address and password, and redirects
// back to next.
func (p *Pages) signIn(ctx context.Context, v *layout.Visit) error {
	next, email := v.Form.Get("next"), v.Form.Get("email")
	// A button of a provider sends its name in "with".
	if v.Form.Has("with") {
		return p.goToProvider(ctx, v, signin.Start{Provider: v.Form.Get("with"), Next: next})
	}

	// The form for a key sends no e-mail address, even if the key is empty.
	shown := Shown{Key: strings.TrimSpace(v.Form.Get("key"))}
	if shown.Key == "" {
		shown.Email, shown.Password = email, v.Form.Get("password")
	}
	_, err := p.SignIn(ctx, v, shown)
	if err == nil {
		return v.Redirect(303, localAddress(next))
	}

	// The API's messages about keys are for programs, so show a simpler one.
	if message := p.formError(v, err); message != "" {
		if email == "" {
			message = "That is no key of this service, or it has ended."
		}
		return p.showLogin(v, next, email, message)
	}
	return err
}

// Shown has the credentials of a sign-in: an e-mail address and password, or a key.
type Shown struct{ Email, Password, Key string }

// SignIn begins a session, sets its cookie on the visit, and returns the time when it expires.
func (p *Pages) SignIn(ctx context.Context, v *layout.Visit, by Shown) (ends time.Time, err error) {
	var begun *account.BegunSession
	if by.Email == "" {
		begun, err = p.Sessions.BeginWithKey(ctx, by.Key, signInOf(v))
	} else {
		begun, err = p.Passwords.BeginWithPassword(ctx, by.Email, by.Password, signInOf(v))
	}
	if err != nil {
		return time.Time{}, err
	}
	setCookie(v, begun.Token, begun.Expires.Sub(p.Now()))
	return begun.Expires, nil
}

// formError returns the message of an error that is shown above the form, and sets the status of the
// answer and the time to retry. It returns "" for an error that needs a page of its own.
func (p *Pages) formError(v *layout.Visit, err error) string {
	var e *call.Error
	if !errors.As(err, &e) {
		return ""
	}

	// Show only errors that the reader can fix, or that end after a while.
	switch {
	case errors.Is(err, call.ErrUnauthenticated):
		v.Status = 401
	case errors.Is(err, call.ErrForbidden):
		v.Status = 403
	case errors.Is(err, call.ErrInvalid):
		v.Status = 400
	case errors.Is(err, call.ErrOverloaded):
		v.Status = 429
		v.Set("Retry-After", strconv.Itoa(max(1, int(e.RetryAfter.Seconds()))))
		if e.RetryAfter > 0 {
			return e.Message + " In " + e.RetryAfter.Round(1e9).String() + "."
		}
	case errors.Is(err, call.ErrUnavailable):
		v.Status = 503
	default:
		return ""
	}
	return e.Message
}

// signOut ends the session and redirects to the start page.
func (p *Pages) signOut(ctx context.Context, v *layout.Visit) error {
	if err := p.SignOut(ctx, v); err != nil {
		return err
	}
	return v.Redirect(303, "/")
}

// SignOut ends the visit's session on all nodes, and removes its cookie.
func (p *Pages) SignOut(ctx context.Context, v *layout.Visit) error {
	if err := p.Sessions.EndSession(ctx, sessionToken(v)); err != nil {
		return err
	}

	// Remove the cookie, even if its session had ended before.
	setCookie(v, "", 0)
	// Let the browser delete what scripts have stored there: it is this person's.
	v.Set("Clear-Site-Data", `"storage"`)
	return nil
}

type joinPage struct {
	Link, Email, Wrong string
	Password           bool
	Providers          []signin.Provider
}

// join shows the form for a new password to a visitor with a link. The link stays valid, because mail
// programs open links too.
func (p *Pages) join(ctx context.Context, v *layout.Visit) error {
	return p.showJoin(ctx, v, v.Query.Get("link"), "")
}

func (p *Pages) showJoin(ctx context.Context, v *layout.Visit, link, wrong string) error {
	u, err := p.Passwords.LinkOwner(ctx, link)
	if err != nil {
		return err
	}
	return v.Show(layout.Head{Title: "Join", Page: "join"}, joinTemplate, joinPage{link, u.Email, wrong, p.Passwords.ByPassword(), p.signInBy()})
}

func (p *Pages) finishJoin(ctx context.Context, v *layout.Visit) error {
	link, password := v.Form.Get("link"), v.Form.Get("password")
	if v.Form.Has("with") {
		return p.goToProvider(ctx, v, signin.Start{Provider: v.Form.Get("with"), Link: link})
	}

	// Compare the two passwords here, so that a typing error does not use up the link.
	if password != v.Form.Get("again") {
		v.Status = 400
		return p.showJoin(ctx, v, link, "The two passwords differ.")
	}
	begun, err := p.Passwords.BeginWithLink(ctx, link, password, signInOf(v))
	if err == nil {
		return p.startSession(v, begun, "/")
	}
	if message := p.formError(v, err); message != "" {
		return p.showJoin(ctx, v, link, message)
	}
	return err
}

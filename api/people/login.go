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
	Password           bool // people sign in by password
	Providers          []signin.Provider
}

// login shows the form. A cookie of a session that has ended is taken back:
// with it nobody would be let in, where guests are.
func (p *Pages) login(ctx context.Context, v *layout.Visit) error {
	if token := token(v); token != "" {
		if _, err := p.Sessions.SessionViewer(ctx, token); errors.Is(err, call.ErrUnauthenticated) {
			setCookie(v, "", 0)
		}
	}
	return p.showLogin(v, v.Query.Get("next"), "", "")
}

func (p *Pages) showLogin(v *layout.Visit, next, email, wrong string) error {
	return v.Show(layout.Head{Title: "Sign in", Page: "login"}, loginTemplate, loginPage{next, wrong, email, p.Passwords.ByPassword(), p.signInBy()})
}

// signIn begins a session of who has a good key, or an e-mail address and its
// password, and leads back to where the reader came from.
func (p *Pages) signIn(ctx context.Context, v *layout.Visit) error {
	next, email := v.Form.Get("next"), v.Form.Get("email")
	// One form for all ways, so that a page has one place where somebody signs in.
	if v.Form.Has("with") {
		return p.leave(ctx, v, signin.Start{Provider: v.Form.Get("with"), Next: next})
	}

	// A form without an address is that of keys, even where the key was forgotten.
	shown := Shown{Key: strings.TrimSpace(v.Form.Get("key"))}
	if shown.Key == "" {
		shown.Email, shown.Password = email, v.Form.Get("password")
	}
	_, err := p.SignIn(ctx, v, shown)
	if err == nil {
		return v.Redirect(303, localAddress(next))
	}

	// What the API says of a key is for programs: people read whether it is one.
	if said := p.refused(v, err); said != "" {
		if email == "" {
			said = "That is no key of this service, or it has ended."
		}
		return p.showLogin(v, next, email, said)
	}
	return err
}

// Shown is what somebody shows who signs in: an address and its password, or a key.
type Shown struct{ Email, Password, Key string }

// SignIn begins a session of who has a good key, or an e-mail address and its
// password, and gives the visit its cookie. It returns when the session ends.
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

// refused is what to say where the form is shown again, "" for a failure that
// is a page of its own. It sets the status of the answer.
func (p *Pages) refused(v *layout.Visit, err error) string {
	var e *call.Error
	if !errors.As(err, &e) {
		return ""
	}

	// Only what the reader can mend, or wait for, is said beside the form.
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

// signOut ends the session and leads to the first page.
func (p *Pages) signOut(ctx context.Context, v *layout.Visit) error {
	if err := p.SignOut(ctx, v); err != nil {
		return err
	}
	return v.Redirect(303, "/")
}

// SignOut ends the session of the visit, on all nodes, and takes its cookie back.
func (p *Pages) SignOut(ctx context.Context, v *layout.Visit) error {
	if err := p.Sessions.EndSession(ctx, token(v)); err != nil {
		return err
	}

	// The cookie goes also where the session had ended already.
	setCookie(v, "", 0)
	// What scripts keep in the browser is of the person who leaves.
	v.Set("Clear-Site-Data", `"storage"`)
	return nil
}

type joinPage struct {
	Link, Email, Wrong string
	Password           bool
	Providers          []signin.Provider
}

// join asks whoever has a link for a password. The link stays good: programs
// that look at links in messages must not use it up.
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

func (p *Pages) joined(ctx context.Context, v *layout.Visit) error {
	link, password := v.Form.Get("link"), v.Form.Get("password")
	if v.Form.Has("with") {
		return p.leave(ctx, v, signin.Start{Provider: v.Form.Get("with"), Link: link})
	}

	// Found out here, so that a slip of the finger does not use up the link.
	if password != v.Form.Get("again") {
		v.Status = 400
		return p.showJoin(ctx, v, link, "The two passwords differ.")
	}
	begun, err := p.Passwords.BeginWithLink(ctx, link, password, signInOf(v))
	if err == nil {
		return p.enter(v, begun, "/")
	}
	if said := p.refused(v, err); said != "" {
		return p.showJoin(ctx, v, link, said)
	}
	return err
}

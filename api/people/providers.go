package people

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/signin"
)

var leaveTemplate = layout.Parse(templates, "templates/leave.html")

// flowCookie is in the names of the cookies for unfinished sign-ins by a provider. Each browser tab has
// a cookie of its own.
const flowCookie = "-login-"

// maxFlows limits the unfinished sign-ins of a browser, because each adds a kilobyte to every request.
const maxFlows = 4

// signInBy returns the providers by which people sign in.
func (p *Pages) signInBy() (all []signin.Provider) {
	for _, x := range p.Providers.Providers() {
		if x.SignsIn {
			all = append(all, x)
		}
	}
	return all
}

// goToProvider sends the browser to a provider, or begins a session at once if a proxy in front has
// identified the person. It uses a page with a Refresh header, because a form may only lead to this
// site.
func (p *Pages) goToProvider(ctx context.Context, v *layout.Visit, req signin.Start) error {
	req.Assertion, req.SignIn = v.Sent(signin.AssertionHeader), signInOf(v)
	begun, err := p.Providers.Begin(ctx, req)
	if err != nil {
		return p.signInFailed(ctx, v, req.By, err)
	}

	if begun.Session != nil {
		return p.startSession(v, begun.Session, req.Next)
	}

	dropFlows(v) // before the new cookie is set, which must stay
	setNamedCookie(v, CookieName(v.Secure)+flowCookie+begun.Cookie, begun.Value, signin.FlowLife)
	v.Set("Refresh", "0; url="+begun.Address)
	return v.Show(layout.Head{Title: "Sign in", Page: "login"}, leaveTemplate, begun)
}

// dropFlows removes the cookies of unfinished sign-ins if the browser has maxFlows or more.
func dropFlows(v *layout.Visit) {
	var names []string
	for cookie := range strings.SplitSeq(v.Sent("Cookie"), ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(cookie), "=")
		if strings.HasPrefix(name, CookieName(v.Secure)+flowCookie) {
			names = append(names, name)
		}
	}
	if len(names) < maxFlows {
		return
	}

	// Remove all, because the browser does not say which is the oldest.
	for _, name := range names {
		setNamedCookie(v, name, "", 0)
	}
}

// callback finishes a sign-in, or the linking of an account, when the browser returns from a provider.
func (p *Pages) callback(ctx context.Context, v *layout.Visit) error {
	back := signin.Back{
		Provider: v.Path[strings.LastIndexByte(v.Path, '/')+1:], Query: v.Query, SignIn: signInOf(v),
		Carried: func(end string) string { return v.Cookie(CookieName(v.Secure) + flowCookie + end) },
	}

	// The route is open, so find out here whether a signed-in person wants to link an account.
	if who, err := p.Sessions.SessionViewer(ctx, sessionToken(v)); err == nil && sessionToken(v) != "" {
		v.Viewer = who
		if by, err := person(v); err == nil {
			back.By = &by
		}
	}

	// Remove the cookie of this sign-in, whatever its result.
	if end := back.CookieOf(); end != "" {
		setNamedCookie(v, CookieName(v.Secure)+flowCookie+end, "", 0)
	}
	done, err := p.Providers.Finish(ctx, back)
	switch {
	case err != nil:
		return p.signInFailed(ctx, v, back.By, err)
	case done.Session != nil:
		return p.startSession(v, done.Session, done.Next)
	}
	return v.Redirect(303, "/settings/account?linked")
}

// signInFailed shows why a provider's sign-in failed: on the account page if the person is signed in,
// else on the sign-in page.
func (p *Pages) signInFailed(ctx context.Context, v *layout.Visit, by *account.Person, err error) error {
	message := p.formError(v, err)
	switch {
	case message == "":
		return err
	case by != nil:
		return p.showOwn(ctx, v, message, "")
	}
	return p.showLogin(v, "", "", message)
}

package people

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/signin"
)

var leaveTemplate = layout.Parse(templates, "templates/leave.html")

// flowCookie begins the names of cookies for sign-ins in progress. Each tab has its own.
const flowCookie = "-login-"

// mostFlows limits the sign-ins in progress of one browser, since each adds a kilobyte to every
// request.
const mostFlows = 4

// signInBy returns the providers by which people sign in.
func (p *Pages) signInBy() (all []signin.Provider) {
	for _, x := range p.Providers.Providers() {
		if x.SignsIn {
			all = append(all, x)
		}
	}
	return all
}

// goToProvider sends the browser to a provider, by a page with a Refresh header, because a form may only
// lead to this site.
func (p *Pages) goToProvider(ctx context.Context, v *layout.Visit, req signin.Start) error {
	// A proxy in front sends the assertion with every request.
	req.Assertion, req.SignIn = v.Sent(signin.AssertionHeader), signInOf(v)
	begun, err := p.Providers.Begin(ctx, req)
	if err != nil {
		return p.signInFailed(ctx, v, req.By, err)
	}

	// The proxy in front has identified the person: no provider is needed.
	if begun.Session != nil {
		return p.startSession(v, begun.Session, req.Next)
	}

	// Before setting the new cookie, which must stay.
	dropFlows(v)
	setFlowCookie(v, CookieName(v.Secure)+flowCookie+begun.Cookie, begun.Value, signin.FlowLife)
	v.Set("Refresh", "0; url="+begun.Address)
	return v.Show(layout.Head{Title: "Sign in", Page: "login"}, leaveTemplate, begun)
}

// dropFlows removes the cookies of unfinished sign-ins if there are many.
func dropFlows(v *layout.Visit) {
	var names []string
	for cookie := range strings.SplitSeq(v.Sent("Cookie"), ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(cookie), "=")
		if strings.HasPrefix(name, CookieName(v.Secure)+flowCookie) {
			names = append(names, name)
		}
	}
	if len(names) < mostFlows {
		return
	}

	// The browser does not say which one is the oldest, so remove all.
	for _, name := range names {
		setFlowCookie(v, name, "", 0)
	}
}

// callback handles the browser's return from a provider.
func (p *Pages) callback(ctx context.Context, v *layout.Visit) error {
	back := signin.Back{
		Provider: v.Path[strings.LastIndexByte(v.Path, '/')+1:], Query: v.Query, SignIn: signInOf(v),
		Carried: func(end string) string { return v.Cookie(CookieName(v.Secure) + flowCookie + end) },
	}

	// The route is open, so check here whether a signed-in person wants to link an account.
	if who, err := p.Sessions.SessionViewer(ctx, sessionToken(v)); err == nil && sessionToken(v) != "" {
		v.Viewer = who
		if by, err := person(v); err == nil {
			back.By = &by
		}
	}

	// The cookie is used up, whatever the result.
	if end := back.CookieOf(); end != "" {
		setFlowCookie(v, CookieName(v.Secure)+flowCookie+end, "", 0)
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
	// Call it first, because it sets the status.
	said := p.formError(v, err)
	switch {
	case said == "":
		return err
	case by != nil:
		return p.showOwn(ctx, v, said, "")
	}
	return p.showLogin(v, "", "", said)
}

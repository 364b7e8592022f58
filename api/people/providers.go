package people

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/signin"
)

var leaveTemplate = layout.Parse(templates, "templates/leave.html")

// flowCookie begins the names of the cookies of sign-ins that are under way. Each
// tab has one.
const flowCookie = "-login-"

// mostFlows is how many sign-ins of one browser are under way at most: each is a
// kilobyte in every request.
const mostFlows = 4

// signInBy are the providers by which people sign in.
func (p *Pages) signInBy() (all []signin.Provider) {
	for _, x := range p.Providers.Providers() {
		if x.SignsIn {
			all = append(all, x)
		}
	}
	return all
}

// leave sends a browser to a provider: by a page that moves on by itself, since
// a form may lead to this site only.
func (p *Pages) leave(ctx context.Context, v *layout.Visit, req signin.Start) error {
	// A proxy in front says it with each request, so that any of them will do.
	req.Assertion, req.SignIn = v.Sent(signin.AssertionHeader), signInOf(v)
	begun, err := p.Providers.Begin(ctx, req)
	if err != nil {
		return p.notIn(ctx, v, req.By, err)
	}

	// A proxy in front of this service has said who it is: there is nowhere to go.
	if begun.Session != nil {
		return p.enter(v, begun.Session, req.Next)
	}

	// Before the new one is set, which must stay.
	dropFlows(v)
	keep(v, CookieName(v.Secure)+flowCookie+begun.Cookie, begun.Value, signin.FlowLife)
	v.Set("Refresh", "0; url="+begun.Address)
	return v.Show(layout.Head{Title: "Sign in", Page: "login"}, leaveTemplate, begun)
}

// dropFlows takes the cookies of sign-ins back that were begun and never ended,
// where there are many.
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

	// Which of them is the oldest the browser does not tell.
	for _, name := range names {
		keep(v, name, "", 0)
	}
}

// callback is where a provider sends a browser back to.
func (p *Pages) callback(ctx context.Context, v *layout.Visit) error {
	back := signin.Back{
		Provider: v.Path[strings.LastIndexByte(v.Path, '/')+1:], Query: v.Query, SignIn: signInOf(v),
		Carried: func(end string) string { return v.Cookie(CookieName(v.Secure) + flowCookie + end) },
	}

	// Asked here, since the address is open to everybody: it may be a sign-in, or somebody who links.
	if who, err := p.Sessions.SessionViewer(ctx, token(v)); err == nil && token(v) != "" {
		v.Viewer = who
		if by, err := person(v); err == nil {
			back.By = &by
		}
	}

	// Whatever comes of it, it is used.
	if end := back.CookieOf(); end != "" {
		keep(v, CookieName(v.Secure)+flowCookie+end, "", 0)
	}
	done, err := p.Providers.Finish(ctx, back)
	switch {
	case err != nil:
		return p.notIn(ctx, v, back.By, err)
	case done.Session != nil:
		return p.enter(v, done.Session, done.Next)
	}
	return v.Redirect(303, "/settings/account?linked")
}

// notIn shows why a provider lets nobody in: to who is signed in on the page of
// their account.
func (p *Pages) notIn(ctx context.Context, v *layout.Visit, by *account.Person, err error) error {
	// It sets the status, so that it comes first.
	said := p.refused(v, err)
	switch {
	case said == "":
		return err
	case by != nil:
		return p.showOwn(ctx, v, said, "")
	}
	return p.showLogin(v, "", "", said)
}

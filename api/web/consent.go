package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/oauth"
)

// Consents authorizes agents by people's consents, for the pages about agents.
type Consents interface {
	Authorize(context.Context, oauth.Person, url.Values) (*oauth.Pending, error)
	Decide(ctx context.Context, who oauth.Person, form string, allow bool) (to string, err error)
	Agents(context.Context, account.Holder) ([]oauth.Agent, error)
	EndAgent(context.Context, account.Holder, string) (*oauth.Agent, error)
}

var (
	consentTemplate = layout.Parse(templates, "templates/consent.html")
	accessTemplate  = layout.Parse(templates, "templates/access.html")
)

// person returns the person who is signed in with an account. ok is false for a viewer with a key only:
// agents that a key authorized would remain after it expires.
func person(v *layout.Visit) (oauth.Person, bool) {
	who := v.Viewer
	if who.Account == "" || who.Session == "" {
		return oauth.Person{}, false
	}
	return oauth.Person{Account: who.Account, Session: who.Session, Key: who.KeyID}, true
}

// consent asks a person whether a client may act for them. A POST has the person's decision. A guest
// signs in first.
func (p *agents) consent(ctx context.Context, v *layout.Visit) error {
	who, ok := person(v)
	switch {
	case !ok && v.Viewer.Role == catalog.RoleGuest && v.Method == "GET":
		return v.Redirect(303, "/login?next="+url.QueryEscape(v.Path+"?"+v.Query.Encode()))
	case !ok:
		return call.Fail(call.ErrForbidden, "Agents are let in by somebody who is signed in with an account: a key of nobody, or one in a header, is not enough.")
	case v.Method == "POST":
		return p.decide(ctx, v, who)
	}

	pending, err := p.consents.Authorize(ctx, who, v.Query)
	var refusal *oauth.Refusal
	switch {
	case errors.As(err, &refusal): // an error that the client may read
		return v.Redirect(303, refusal.To)
	case err != nil: // the client's address is not trusted: show the error to the person
		return consentError(v, err)
	}

	// Allow the redirect to the client that follows the form.
	v.Set("Content-Security-Policy", strings.Replace(v.Policy(), "form-action 'self'", "form-action 'self' "+pending.Source, 1))
	service := p.base()
	if u, err := url.Parse(service); err == nil {
		service = u.Host
	}
	return v.Show(layout.Head{Title: "Let an agent in", Page: "consent"}, consentTemplate, struct {
		*oauth.Pending
		Account, ID, Service, Since string
		Checked                     bool
	}{pending, v.Viewer.Name, documentOf(pending.Client), service, p.lastConsent(ctx, v, pending), pending.Client.Kind == oauth.ByOwner})
}

// lastConsent says how long ago the person let in a program of the same name and host; "" for never, or
// if that is unknown.
func (p *agents) lastConsent(ctx context.Context, v *layout.Visit, pending *oauth.Pending) string {
	own := v.Viewer
	own.Role = catalog.RoleMember // owners manage the programs of others too
	by, err := account.AsHolder(own)
	if err != nil {
		return ""
	}
	list, err := p.consents.Agents(ctx, by)
	if err != nil {
		return ""
	}

	// A program on the person's own machine listens at another port each time.
	withoutPort := func(host string) string {
		if pending.Local {
			host, _, _ = strings.Cut(host, ":")
		}
		return host
	}
	last := time.Time{}
	for _, a := range list {
		if a.Name == pending.Client.Name && withoutPort(a.Host) == withoutPort(pending.Host) && a.Created.After(last) {
			last = a.Created
		}
	}
	if last.IsZero() {
		return ""
	}
	return p.ago(last)
}

// documentOf returns the address of a client's metadata document; "" if it has none.
func documentOf(c *oauth.Client) string {
	if c.Kind == oauth.Document {
		return c.ID
	}
	return ""
}

func (p *agents) decide(ctx context.Context, v *layout.Visit, who oauth.Person) error {
	if err := v.SameSite(); err != nil {
		return err
	}
	to, err := p.consents.Decide(ctx, who, v.Form.Get("request"), v.Form.Get("decision") == "allow")
	if err != nil {
		return consentError(v, err)
	}
	return v.Redirect(303, to)
}

// consentError shows an error of OAuth to the person. It returns other errors.
func consentError(v *layout.Visit, err error) error {
	var refusal *oauth.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return v.ShowError(400, refusal.Description, 0)
}

// access lists the programs that the viewer has authorized. A POST removes one.
func (p *agents) access(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsHolder(v.Viewer)
	if err != nil {
		return err
	}

	removed := "" // name of the removed program
	if v.Method == "POST" {
		if err := v.SameSite(); err != nil {
			return err
		}

		agent, err := p.consents.EndAgent(ctx, by, v.Form.Get("end"))
		if err != nil {
			return err
		}
		removed = agent.Name
	}

	// Read the list after the change.
	list, err := p.consents.Agents(ctx, by)
	if err != nil {
		return err
	}

	type row struct{ ID, Name, Kind, Host, User, Created, Used, Expires string }
	data := struct {
		Ended, Address string
		Rows           []row
	}{Ended: removed, Address: p.base() + "/api/mcp"}

	// Times are relative, but the expiry is a date.
	for _, a := range list {
		data.Rows = append(data.Rows, row{
			ID:      a.ID,
			Name:    a.Name,
			Kind:    a.Kind,
			Host:    a.Host,
			User:    a.User,
			Created: p.ago(a.Created),
			Used:    p.ago(a.Used),
			Expires: a.Expires.UTC().Format("2006-01-02"),
		})
	}
	return v.Show(layout.Head{Title: "Programs with access", Page: "settings", Side: "access"}, accessTemplate, data)
}

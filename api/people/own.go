package people

import (
	"context"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/signin"
)

var ownTemplate = layout.Parse(templates, "templates/account.html")

type ownPage struct {
	Name, Role, Wrong, Done string
	Account                 bool // false for a key without an account
	Password                bool
	Sessions                []sessionRow
	Providers               []signin.Linked
}

type sessionRow struct {
	ID, Method, Address, Agent string
	Used, Ends                 layout.When
	Here                       bool
}

// person returns the proof that the viewer has an account.
func person(v *layout.Visit) (account.Person, error) { return account.AsPerson(v.Viewer) }

// showAccount shows the viewer's account.
func (p *Pages) showAccount(ctx context.Context, v *layout.Visit) error {
	switch {
	case v.Query.Has("missing"):
		return p.showOwn(ctx, v, "Link what is marked below to go on: this service asks everybody to.", "")
	case v.Query.Has("linked"):
		return p.showOwn(ctx, v, "", "It is linked.")
	}
	return p.showOwn(ctx, v, "", "")
}

func (p *Pages) showOwn(ctx context.Context, v *layout.Visit, wrong, done string) error {
	if v.Viewer.Role == catalog.RoleGuest {
		return call.Fail(call.ErrUnauthenticated, "Sign in to see your account.")
	}

	// A key without an account only has a name and a role.
	data := ownPage{Name: v.Viewer.Name, Role: v.Viewer.Role.String(), Wrong: wrong, Done: done, Password: p.Passwords.ByPassword()}
	if by, err := person(v); err == nil {
		data.Account = true
		data.Providers = p.Providers.Linked(ctx, by)
		list, err := p.Sessions.SessionsOf(ctx, by, "me")
		if err != nil {
			return err
		}
		for _, x := range list {
			data.Sessions = append(data.Sessions, sessionRow{x.ID, x.Method, x.Address, x.Agent, p.when(x.Used), p.when(x.Ends), x.ID == v.Viewer.Session})
		}
	}
	return v.Show(layout.Head{Title: "Your account", Page: "settings", Side: "account"}, ownTemplate, data)
}

// changeOwn makes the change of a submitted form to the viewer's account, and shows its result.
func (p *Pages) changeOwn(ctx context.Context, v *layout.Visit) error {
	by, err := person(v)
	if err != nil {
		return err
	}

	// An account at a provider is linked on the provider's page.
	if v.Form.Has("link") {
		return p.goToProvider(ctx, v, signin.Start{Provider: v.Form.Get("link"), By: &by})
	}

	done := ""
	switch {
	case v.Form.Has("token"):
		err = p.Providers.LinkByToken(ctx, signin.Shown{Provider: v.Form.Get("at"), User: v.Form.Get("user"), Token: v.Form.Get("token"), By: by})
		done = "It is linked. What you may read there is asked for now."

	case v.Form.Has("unlink"):
		err = p.Providers.Unlink(ctx, by, v.Form.Get("unlink"), v.Form.Get("subject"))
		done = "It is linked no more."

	case v.Form.Has("end"):
		_, err = p.Sessions.EndSessions(ctx, by, "me", v.Form.Get("end"))
		done = "Signed out there."

	// The remaining form is that for a new password.
	case v.Form.Get("password") != v.Form.Get("again"):
		v.Status = 400
		return p.showOwn(ctx, v, "The two passwords differ.", "")
	default:
		err = p.Passwords.ChangePassword(ctx, by, v.Form.Get("old"), v.Form.Get("password"), v.Address)
		done = "The password is changed. You are signed out everywhere else."
	}

	if err == nil {
		return p.showOwn(ctx, v, "", done)
	}
	if message := p.formError(v, err); message != "" {
		return p.showOwn(ctx, v, message, "")
	}
	return err
}

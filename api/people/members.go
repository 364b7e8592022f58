package people

import (
	"context"
	"net/url"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

var membersTemplate = layout.Parse(templates, "templates/members.html")

type membersPage struct {
	Wrong, Done string
	Link, Mail  string // link for a person who was just invited, and whether it was sent by e-mail
	Until       layout.When
	Rows        []memberRow
}

type memberRow struct {
	ID, Email, Name, Role, State string
	Created                      layout.When
	Keys                         int
	Owner, Active, Pending       bool
	By                           string
	Unproven                     bool
}

// showMembersList lists the accounts, for owners.
func (p *Pages) showMembersList(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}
	return p.showMembers(ctx, v, by, membersPage{})
}

func (p *Pages) showMembers(ctx context.Context, v *layout.Visit, by account.Owner, data membersPage) error {
	users, err := p.Accounts.Users(ctx, by)
	if err != nil {
		return err
	}
	for _, u := range users {
		data.Rows = append(data.Rows, memberRow{
			u.ID, u.Email, u.Name, u.Role.String(), u.State.String(), p.when(u.Created), u.Keys,
			u.Role == catalog.RoleOwner, u.State == catalog.AccountActive, u.State == catalog.AccountPending, u.By, u.Unproven,
		})
	}
	return v.Show(layout.Head{Title: "People", Page: "settings", Side: "people"}, membersTemplate, data)
}

// change makes the change of a button on the page, and returns a sentence about it.
type change func(p *Pages, ctx context.Context, by account.Owner, user string) (done string, err error)

// setAccount makes a change that sets the state or role of an account. Zero values stay unchanged.
func setAccount(state catalog.AccountState, role catalog.Role, done string) change {
	return func(p *Pages, ctx context.Context, by account.Owner, user string) (string, error) {
		u, err := p.Accounts.ChangeUser(ctx, by, account.ChangeUserRequest{User: user, State: state, Role: role})
		if err != nil {
			return "", err
		}
		return u.Email + " " + done, nil
	}
}

// changes has the changes by the names of their buttons.
var changes = map[string]change{
	"approve":    setAccount(catalog.AccountActive, catalog.RoleNone, "may sign in."),
	"suspend":    setAccount(catalog.AccountSuspended, catalog.RoleNone, "is suspended and signed out everywhere."),
	"reactivate": setAccount(catalog.AccountActive, catalog.RoleNone, "is active again."),
	"owner":      setAccount(0, catalog.RoleOwner, "is an owner."),
	"member":     setAccount(0, catalog.RoleMember, "is a member."),
	"logout": func(p *Pages, ctx context.Context, by account.Owner, user string) (string, error) {
		_, err := p.Sessions.EndSessions(ctx, by, user, "")
		return "Signed out everywhere.", err
	},
	"delete": func(p *Pages, ctx context.Context, by account.Owner, user string) (string, error) {
		u, err := p.Accounts.DeleteUser(ctx, by, user)
		if err != nil {
			return "", err
		}
		return u.Email + " is deleted.", nil
	},
}

// changeMember makes the change of a submitted form, and shows the list with its result.
func (p *Pages) changeMember(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	// Show a refusal above the list as it is now: another owner may have changed it.
	data, err := p.changeMemberData(ctx, v, by)
	if err != nil {
		message := p.formError(v, err)
		if message == "" {
			return err
		}
		data = membersPage{Wrong: message}
	}
	return p.showMembers(ctx, v, by, data)
}

func (p *Pages) changeMemberData(ctx context.Context, v *layout.Visit, by account.Owner) (data membersPage, err error) {
	user, do := v.Form.Get("user"), v.Form.Get("do")
	switch {
	case do == "invite":
		// Any other role than "owner" makes a member.
		role := catalog.RoleMember
		if v.Form.Get("role") == "owner" {
			role = catalog.RoleOwner
		}
		if _, err = p.Accounts.CreateUser(ctx, by, account.CreateUserRequest{Email: user, Role: role}); err != nil {
			return data, err
		}
		return p.newLink(ctx, by, user)
	case do == "link":
		return p.newLink(ctx, by, user)
	case changes[do] != nil:
		data.Done, err = changes[do](p, ctx, by, user)
		return data, err
	}
	return data, call.Fail(call.ErrInvalid, "this page cannot do that")
}

// newLink makes a link by which an account's person joins. Only the returned page shows it.
func (p *Pages) newLink(ctx context.Context, by account.Owner, user string) (data membersPage, err error) {
	l, err := p.Passwords.NewLink(ctx, by, account.NewLinkRequest{User: user, Join: true})
	if err != nil {
		return data, err
	}
	return membersPage{Link: p.Base() + "/join?link=" + url.QueryEscape(l.Token), Mail: l.Mail, Until: p.when(l.Expires)}, nil
}

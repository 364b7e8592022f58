package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// userRoutes are the routes of accounts and of where they are signed in.
type userRoutes struct {
	users     people.Accounts
	passwords people.Passwords
	sessions  people.Sessions
	base      func() string
}

func (a *userRoutes) rows() []route {
	return []route{
		row("GET", "/api/users", accessOwner, adminTimeout, owned(a.users.Users)),
		row("POST", "/api/users", accessOwner, adminTimeout, owners(a.create)),
		row("POST", "/api/users/{user}", accessOwner, adminTimeout, owners(a.change)),
		row("DELETE", "/api/users/{user}", accessOwner, adminTimeout, named(a.users.DeleteUser)),
		row("POST", "/api/users/{user}/grants", accessOwner, adminTimeout, owners(a.grant)),
		row("GET", "/api/users/{user}/access", accessOwner, adminTimeout, owners(a.why)),
		row("POST", "/api/users/{user}/password", accessOwner, adminTimeout, owners(a.setPassword)),
		row("POST", "/api/users/{user}/link", accessOwner, adminTimeout, owners(a.newLink)),
		row("GET", "/api/users/{user}/sessions", accessHolder, adminTimeout, holders(a.listSessions)),
		row("DELETE", "/api/users/{user}/sessions", accessHolder, adminTimeout, holders(a.endSessions)),
	}
}

// create is POST /api/users.
func (a *userRoutes) create(ctx context.Context, c *call, by account.Owner) error {
	// The account has no way in yet: a link or a password is the next request.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.CreateUserRequest{Email: f.required("email"), Name: f.text("name"), Role: f.role()}
	if err := f.err(); err != nil {
		return err
	}

	c.status = 201
	return c.answer(a.users.CreateUser(ctx, by, req))
}

// change is POST /api/users/{user}.
func (a *userRoutes) change(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.ChangeUserRequest{User: c.wild[0], Role: f.role()}

	// An empty name is a change too; one that is left out is none.
	if _, ok := f.member("name"); ok {
		name := f.text("name")
		req.Name = &name
	}

	// Waiting is no state that somebody may be put into.
	switch state := f.text("state"); state {
	case "":
	case "active":
		req.State = catalog.AccountActive
	case "suspended":
		req.State = catalog.AccountSuspended
	default:
		f.wrong("state", "expected active or suspended")
	}
	if err := f.err(); err != nil {
		return err
	}

	return c.answer(a.users.ChangeUser(ctx, by, req))
}

// setPassword is POST /api/users/{user}/password.
func (a *userRoutes) setPassword(ctx context.Context, c *call, by account.Owner) error {
	// In the body alone: addresses stand in logs, of proxies as well.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.SetPasswordRequest{User: c.wild[0], Password: f.required("password")}
	if err := f.err(); err != nil {
		return err
	}

	return c.answer(a.passwords.SetPassword(ctx, by, req))
}

// newLink is POST /api/users/{user}/link.
func (a *userRoutes) newLink(ctx context.Context, c *call, by account.Owner) error {
	// One to join is an invitation and lasts longer than one for a password that was
	// forgotten; never for an owner.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.NewLinkRequest{User: c.wild[0], Join: f.flag("join")}
	if err := f.err(); err != nil {
		return err
	}

	l, err := a.passwords.NewLink(ctx, by, req)
	if err != nil {
		return err
	}

	c.status = 201
	return c.json(struct {
		Link      string           `json:"link"`
		ExpiresAt time.Time        `json:"expiresAt"`
		User      account.UserInfo `json:"user"`
	}{a.base() + "/join?link=" + l.Token, l.Expires, l.User})
}

// grant is POST /api/users/{user}/grants.
func (a *userRoutes) grant(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.GrantRequest{User: c.wild[0]}

	// With neither it changes nothing, and lists what is granted.
	if _, ok := f.member("add"); ok {
		req.Add = f.texts("add")
	}
	if _, ok := f.member("remove"); ok {
		req.Remove = f.texts("remove")
	}
	if err := f.err(); err != nil {
		return err
	}

	return c.answer(a.users.Grant(ctx, by, req))
}

// why is GET /api/users/{user}/access.
func (a *userRoutes) why(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	repo := p.required("repo")
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.users.Why(ctx, by, c.wild[0], repo))
}

// listSessions is GET /api/users/{user}/sessions.
func (a *userRoutes) listSessions(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.sessions.SessionsOf(ctx, by, c.wild[0]))
}

// endSessions is DELETE /api/users/{user}/sessions.
func (a *userRoutes) endSessions(ctx context.Context, c *call, by account.Holder) error {
	// An id that is empty by mistake must not mean all of them. Nor must others: a key
	// asks here, so that every session is another one.
	which, given := c.arg("session")
	if given && (which == "" || which == "others" || len(which) > 64 || strings.Trim(which, "0123456789abcdefghijklmnopqrstuvwxyz") != "") {
		return &failure{Status: 400, Code: codeInvalidParams, Message: "session: give the id of a session, or leave it out for all."}
	}
	n, err := a.sessions.EndSessions(ctx, by, c.wild[0], which)
	if err != nil {
		return err
	}

	return c.json(struct {
		Ended int `json:"ended"`
	}{n})
}

// role is the member "role" of a body; RoleNone where it is not given.
func (f *fields) role() catalog.Role {
	switch role := f.text("role"); role {
	case "member":
		return catalog.RoleMember
	case "owner":
		return catalog.RoleOwner
	case "":
	default:
		f.wrong("role", "expected member or owner")
	}
	return catalog.RoleNone
}

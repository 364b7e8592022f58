package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// userRoutes handles accounts and their sessions.
type userRoutes struct {
	users     people.Accounts
	passwords people.Passwords
	sessions  people.Sessions
	base      func() string
}

func (a *userRoutes) rows() []route {
	return []route{
		newRoute("GET", "/api/users", accessOwner, adminTimeout, ownerAnswer(a.users.Users)),
		newRoute("POST", "/api/users", accessOwner, adminTimeout, ownerHandler(a.create)),
		newRoute("POST", "/api/users/{user}", accessOwner, adminTimeout, ownerHandler(a.change)),
		newRoute("DELETE", "/api/users/{user}", accessOwner, adminTimeout, ownerAction(a.users.DeleteUser)),
		newRoute("POST", "/api/users/{user}/grants", accessOwner, adminTimeout, ownerHandler(a.grant)),
		newRoute("GET", "/api/users/{user}/access", accessOwner, adminTimeout, ownerHandler(a.why)),
		newRoute("POST", "/api/users/{user}/password", accessOwner, adminTimeout, ownerHandler(a.setPassword)),
		newRoute("POST", "/api/users/{user}/link", accessOwner, adminTimeout, ownerHandler(a.newLink)),
		newRoute("GET", "/api/users/{user}/sessions", accessHolder, adminTimeout, holderHandler(a.listSessions)),
		newRoute("DELETE", "/api/users/{user}/sessions", accessHolder, adminTimeout, holderHandler(a.endSessions)),
	}
}

// create handles POST /api/users.
func (a *userRoutes) create(ctx context.Context, c *call, by account.Owner) error {
	// The account has no password yet: the next request creates a link or sets a password.
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

// change handles POST /api/users/{user}.
func (a *userRoutes) change(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.ChangeUserRequest{User: c.wild[0], Role: f.role()}

	// An empty name is a change; a missing one is not.
	if _, ok := f.member("name"); ok {
		name := f.text("name")
		req.Name = &name
	}

	// "waiting" cannot be set.
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

// setPassword handles POST /api/users/{user}/password.
func (a *userRoutes) setPassword(ctx context.Context, c *call, by account.Owner) error {
	// Only in the body: URLs get into logs, also of proxies.
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

// newLink handles POST /api/users/{user}/link.
func (a *userRoutes) newLink(ctx context.Context, c *call, by account.Owner) error {
	// With join the link is an invitation, which lasts longer than a link for a forgotten
	// password. Owners get no invitations.
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
		Mail      string           `json:"mail,omitempty"`
	}{a.base() + "/join?link=" + l.Token, l.Expires, l.User, l.Mail})
}

// grant handles POST /api/users/{user}/grants.
func (a *userRoutes) grant(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.GrantRequest{User: c.wild[0]}

	// Without add and remove, the answer lists the grants.
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

// why handles GET /api/users/{user}/access.
func (a *userRoutes) why(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	repo := p.required("repo")
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.users.Why(ctx, by, c.wild[0], repo))
}

// listSessions handles GET /api/users/{user}/sessions.
func (a *userRoutes) listSessions(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.sessions.SessionsOf(ctx, by, c.wild[0]))
}

// endSessions handles DELETE /api/users/{user}/sessions.
func (a *userRoutes) endSessions(ctx context.Context, c *call, by account.Holder) error {
	// An empty id is an error, so that a client's mistake never ends all sessions. So is
	// "others": for a key, all sessions are others.
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

// role reads the member "role"; RoleNone if it is missing.
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

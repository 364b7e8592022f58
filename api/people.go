package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// userRoutes handles accounts with their grants, passwords and sessions.
type userRoutes struct {
	users     people.Accounts
	passwords people.Passwords
	sessions  people.Sessions
	base      func() string
}

func (a *userRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/users", accessOwner, adminTimeout, ownerAnswer(a.users.Users)),
		newRoute("POST", "/api/users", accessOwner, adminTimeout, ownerHandler(a.create)),
		newRoute("POST", "/api/users/{user}", accessOwner, adminTimeout, ownerHandler(a.change)),
		newRoute("DELETE", "/api/users/{user}", accessOwner, adminTimeout, ownerAction(a.users.DeleteUser)),
		newRoute("POST", "/api/users/{user}/grants", accessOwner, adminTimeout, ownerHandler(a.grant)),
		newRoute("GET", "/api/users/{user}/access", accessOwner, adminTimeout, ownerHandler(a.explainAccess)),
		newRoute("POST", "/api/users/{user}/password", accessOwner, adminTimeout, ownerHandler(a.setPassword)),
		newRoute("POST", "/api/users/{user}/link", accessOwner, adminTimeout, ownerHandler(a.newLink)),
		newRoute("GET", "/api/users/{user}/sessions", accessHolder, adminTimeout, holderHandler(a.listSessions)),
		newRoute("DELETE", "/api/users/{user}/sessions", accessHolder, adminTimeout, holderHandler(a.endSessions)),
	}
}

// create handles POST /api/users. The new account has no password: a further request makes a link
// for its person, or sets a password.
func (a *userRoutes) create(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.CreateUserRequest{Email: f.required("email"), Name: f.text("name"), Role: f.role(catalog.RoleMember, catalog.RoleOwner)}
	if err := f.err(); err != nil {
		return err
	}

	c.status = 201
	return c.answer(a.users.CreateUser(ctx, by, req))
}

// change handles POST /api/users/{user}: a new name, role or state. What the body lacks stays
// unchanged.
func (a *userRoutes) change(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	// An empty name removes the name. A missing one changes nothing.
	req := account.ChangeUserRequest{User: c.pathValues[0], Role: f.role(catalog.RoleMember, catalog.RoleOwner), Name: given(f, "name", f.text)}

	// Nobody can set an account back to "waiting".
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
	// Read the password from the body only, because proxies log URLs.
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.SetPasswordRequest{User: c.pathValues[0], Password: f.required("password")}
	if err := f.err(); err != nil {
		return err
	}

	return c.answer(a.passwords.SetPassword(ctx, by, req))
}

// newLink handles POST /api/users/{user}/link: it makes a link by which a person sets a password.
// With join the link is an invitation, which is valid for longer. Owners get no invitations.
func (a *userRoutes) newLink(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.NewLinkRequest{User: c.pathValues[0], Join: f.flag("join")}
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

// grant handles POST /api/users/{user}/grants: it adds and removes grants, and answers with all.
func (a *userRoutes) grant(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := account.GrantRequest{User: c.pathValues[0]}

	// Without add and remove nothing changes.
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

// explainAccess handles GET /api/users/{user}/access: why an account sees a repository, or not.
func (a *userRoutes) explainAccess(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	repo := p.required("repo")
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.users.Why(ctx, by, c.pathValues[0], repo))
}

// listSessions handles GET /api/users/{user}/sessions.
func (a *userRoutes) listSessions(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.sessions.SessionsOf(ctx, by, c.pathValues[0]))
}

// endSessions handles DELETE /api/users/{user}/sessions: it ends one session, or all without the
// parameter session.
func (a *userRoutes) endSessions(ctx context.Context, c *call, by account.Holder) error {
	// Refuse an empty id, so that a client's mistake never ends all sessions. Refuse "others" too:
	// it would end all sessions but the caller's, and a caller with a key has none.
	which, given := c.arg("session")
	if given && (which == "" || which == "others" || len(which) > 64 || strings.Trim(which, "0123456789abcdefghijklmnopqrstuvwxyz") != "") {
		return &failure{Status: 400, Code: codeInvalidParams, Message: "session: give the id of a session, or leave it out for all."}
	}
	n, err := a.sessions.EndSessions(ctx, by, c.pathValues[0], which)
	if err != nil {
		return err
	}

	return c.json(struct {
		Ended int `json:"ended"`
	}{n})
}

// role returns the role in the member "role", one of roles; RoleNone if it is missing or invalid.
func (f *fields) role(roles ...catalog.Role) catalog.Role {
	text := f.text("role")
	names := make([]string, len(roles))
	for i, r := range roles {
		if names[i] = r.String(); names[i] == text {
			return r
		}
	}
	if text != "" {
		last := len(names) - 1
		f.wrong("role", "expected %s or %s", strings.Join(names[:last], ", "), names[last])
	}
	return catalog.RoleNone
}

package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/people"
)

// entry signs browsers in and out, with the limits of the sign-in page. Package people implements it.
type entry interface {
	SignIn(ctx context.Context, v *layout.Visit, by people.Shown) (ends time.Time, err error)
	SignOut(ctx context.Context, v *layout.Visit) error
}

// sessionRoutes handles browser sessions.
type sessionRoutes struct {
	entry entry
	visit func(*call) *layout.Visit
}

func (a *sessionRoutes) routes() []route {
	return []route{
		newRoute("POST", sessionPath, accessOpen, adminTimeout, a.begin),
		newRoute("DELETE", sessionPath, accessOpen, adminTimeout, a.end),
	}
}

// begin handles POST /api/session: it signs in as the sign-in page does, for scripts and programs.
func (a *sessionRoutes) begin(ctx context.Context, c *call) error {
	// Refuse another site's page: it could sign a reader in with its own account, and then see what
	// the reader searches.
	v := a.visit(c)
	if err := v.SameSite(); err != nil {
		return err
	}

	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	by := people.Shown{Email: f.text("email"), Password: f.text("password"), Key: strings.TrimSpace(f.text("key"))}

	// Refuse a key together with a password: an error could not say which of them is wrong.
	switch byKey := by.Key != ""; {
	case byKey && (by.Email != "" || by.Password != ""):
		f.wrong("key", "give either a key, or email and password")
	case !byKey && by.Email == "" && len(f.errs) == 0:
		f.wrong("email", "required, with password, where there is no key")
	}
	if err := f.err(); err != nil {
		return err
	}

	ends, err := a.entry.SignIn(ctx, v, by)
	if err != nil {
		return err
	}

	// Send the session's token in the cookie only, so that no script can read it.
	c.status, c.header = 201, append(c.header, v.Header...)
	return c.json(struct {
		ExpiresAt string `json:"expiresAt"`
	}{formatTime(ends)})
}

// end handles DELETE /api/session: it signs out as the page does, for scripts and programs. It
// succeeds without a session too.
func (a *sessionRoutes) end(ctx context.Context, c *call) error {
	v := a.visit(c)
	if err := v.SameSite(); err != nil {
		return err
	}

	if err := a.entry.SignOut(ctx, v); err != nil {
		return err
	}
	c.header = append(c.header, v.Header...)
	return c.json(struct {
		IsSignedIn bool `json:"isSignedIn"`
	}{false})
}

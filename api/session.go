package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/people"
)

// entry signs browsers in and out: it is that of the pages, with its bounds.
type entry interface {
	SignIn(ctx context.Context, v *layout.Visit, by people.Shown) (ends time.Time, err error)
	SignOut(ctx context.Context, v *layout.Visit) error
}

// sessionRoutes are the routes of the session of a browser.
type sessionRoutes struct {
	entry entry
	visit func(*call) *layout.Visit
}

func (a *sessionRoutes) rows() []route {
	return []route{
		row("POST", sessionPath, accessOpen, adminTimeout, a.begin),
		row("DELETE", sessionPath, accessOpen, adminTimeout, a.end),
	}
}

// begin is POST /api/session: the sign-in of the page, for programs.
func (a *sessionRoutes) begin(ctx context.Context, c *call) error {
	// A page of another site could sign a reader in as somebody else, who then sees what
	// the reader looks for.
	v := a.visit(c)
	if err := v.SameSite(); err != nil {
		return err
	}

	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	by := people.Shown{Email: f.text("email"), Password: f.text("password"), Key: strings.TrimSpace(f.text("key"))}

	// Of both nobody could tell which of them was wrong.
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

	// The token is in the cookie alone, where no script can read it.
	c.status, c.header = 201, append(c.header, v.Header...)
	return c.json(struct {
		ExpiresAt string `json:"expiresAt"`
	}{stamp(ends)})
}

// end is DELETE /api/session: the sign-out of the page. Without a session there is
// nothing to end, which is no failure.
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

package web

import (
	"context"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Keys is what the page of keys needs.
type Keys interface {
	CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error)
	Keys(context.Context, account.Holder, bool) ([]account.KeyInfo, error)
	RevokeKey(context.Context, account.Holder, string) (*account.KeyInfo, error)
}

var keysTemplate = layout.Parse(templates, "templates/keys.html")

// keys is the page of API keys: all of them for owners, their own for people with an
// account.
func (p *keyring) keys(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsHolder(v.Viewer)
	if err != nil {
		return err
	}

	made, wrong := "", ""
	if v.Method == "POST" {
		made, wrong, err = p.changeKeys(ctx, v, by)
		if err != nil {
			return err
		}
	}

	// After a change the list must have it, even where this node lags behind;
	// looking alone needs no leader.
	list, err := p.apiKeys.Keys(ctx, by, v.Method == "POST")
	if err != nil {
		return err
	}

	type row struct{ ID, Name, Role, Prefix, Whose, Created, Used, Expires string }
	data := struct {
		Made, Wrong string
		Owner       bool // keys of owners may be made, and those of all are shown
		Rows        []row
	}{Made: made, Wrong: wrong, Owner: v.Viewer.Role == catalog.RoleOwner}

	for _, k := range list {
		r := row{ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefix: k.Prefix, Whose: k.User, Created: p.ago(k.Created), Used: p.ago(k.Used)}
		if !k.Expires.IsZero() {
			r.Expires = k.Expires.UTC().Format("2006-01-02")
		}
		data.Rows = append(data.Rows, r)
	}
	return v.Show(layout.Head{Title: "API keys", Page: "settings", Side: "keys"}, keysTemplate, data)
}

// changeKeys does what a form of the page asks for. It returns the key that was
// made, or what of the form is wrong, and sets the status for that.
func (p *keyring) changeKeys(ctx context.Context, v *layout.Visit, by account.Holder) (made, wrong string, err error) {
	// A form of another site could make a key, or end one.
	if err := v.SameSite(); err != nil {
		return "", "", err
	}

	// One form for both: which it is, the button says.
	if id := v.Form.Get("revoke"); id != "" {
		_, err = p.apiKeys.RevokeKey(ctx, by, id)
	} else {
		var r *account.CreateKeyResponse
		days, _ := strconv.Atoi(v.Form.Get("days")) // 0, never, where it is no number
		r, err = p.apiKeys.CreateKey(ctx, by, account.CreateKeyRequest{Name: v.Form.Get("name"), Role: roleOf(v.Form.Get("role")), Expires: time.Duration(max(0, days)) * 24 * time.Hour})
		// Shown on this page and never again: only its hash is kept.
		if err == nil {
			made = r.Key
		}
	}

	// What the form can mend is told beside the list, which stays; the rest is a page of its own.
	if k := call.KindOf(err); k != nil && (k.Status == 400 || k.Status == 404) {
		v.Status = k.Status
		return "", err.Error(), nil
	}
	return made, "", err
}

func roleOf(name string) catalog.Role {
	if name == "owner" {
		return catalog.RoleOwner
	}
	return catalog.RoleMember
}

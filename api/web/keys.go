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

// Keys is what the page of keys uses.
type Keys interface {
	CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error)
	Keys(context.Context, account.Holder, bool) ([]account.KeyInfo, error)
	RevokeKey(context.Context, account.Holder, string) (*account.KeyInfo, error)
}

var keysTemplate = layout.Parse(templates, "templates/keys.html")

// keys shows the API keys: all of them for owners, their own for other members.
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

	// After a change the list must include it, even if this node lags behind; just reading needs
	// no leader.
	list, err := p.apiKeys.Keys(ctx, by, v.Method == "POST")
	if err != nil {
		return err
	}

	type row struct{ ID, Name, Role, Prefix, Whose, Created, Used, Expires string }
	data := struct {
		Made, Wrong string
		Owner       bool // an owner may make owners' keys and sees all keys
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

// changeKeys makes the change of a form. It returns the new key, or the error of the form after
// setting the status.
func (p *keyring) changeKeys(ctx context.Context, v *layout.Visit, by account.Holder) (made, wrong string, err error) {
	// Refuse forms of other sites.
	if err := v.SameSite(); err != nil {
		return "", "", err
	}

	// The button tells which of the two forms it is.
	if id := v.Form.Get("revoke"); id != "" {
		_, err = p.apiKeys.RevokeKey(ctx, by, id)
	} else {
		var r *account.CreateKeyResponse
		days, _ := strconv.Atoi(v.Form.Get("days")) // 0 means never; also if it is no number
		r, err = p.apiKeys.CreateKey(ctx, by, account.CreateKeyRequest{Name: v.Form.Get("name"), Role: roleOf(v.Form.Get("role")), Expires: time.Duration(max(0, days)) * 24 * time.Hour})
		// The key is only shown here, because only its hash is stored.
		if err == nil {
			made = r.Key
		}
	}

	// An error that the form can fix is shown next to the list; others have their own page.
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

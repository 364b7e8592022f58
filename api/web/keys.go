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

// Keys creates, lists and revokes API keys. With consistent, Keys lists the changes of all nodes.
type Keys interface {
	CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error)
	Keys(ctx context.Context, by account.Holder, consistent bool) ([]account.KeyInfo, error)
	RevokeKey(context.Context, account.Holder, string) (*account.KeyInfo, error)
}

var keysTemplate = layout.Parse(templates, "templates/keys.html")

// showKeys shows the API keys: all for an owner, their own for another member. A POST first creates or
// revokes a key; a new key is shown this once.
func (p *keyring) showKeys(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsHolder(v.Viewer)
	if err != nil {
		return err
	}

	var newKey account.CreateKeyResponse
	formError := ""
	changed := v.Method == "POST"
	if changed {
		newKey, formError, err = p.changeKeys(ctx, v, by)
		if err != nil {
			return err
		}
	}

	// After a change, ask the leader for news, so that the list includes it.
	list, err := p.apiKeys.Keys(ctx, by, changed)
	if err != nil {
		return err
	}

	type row struct{ ID, Name, Role, Prefix, Whose, Created, Used, Expires string }
	data := struct {
		Made, Wrong string
		ForMetrics  bool // the new key opens the metrics alone
		Owner       bool // an owner sees all keys, and may create keys of other roles
		Rows        []row
		Agents      []layout.Agent
	}{Made: newKey.Key, Wrong: formError, ForMetrics: newKey.Info.Role == catalog.RoleMetrics, Owner: v.Viewer.Role == catalog.RoleOwner}
	if newKey.Key != "" {
		data.Agents = layout.Agents(p.base(), newKey.Key)
	}

	for _, k := range list {
		r := row{ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefix: k.Prefix, Whose: k.User, Created: p.ago(k.Created), Used: p.ago(k.Used)}
		if !k.Expires.IsZero() {
			r.Expires = k.Expires.UTC().Format("2006-01-02")
		}
		data.Rows = append(data.Rows, r)
	}
	return v.Show(layout.Head{Title: "API keys", Page: "settings", Side: "keys"}, keysTemplate, data)
}

// changeKeys revokes or creates a key, as a submitted form says. It returns the new key; or, for an
// error that the reader can fix, a message, and sets the status.
func (p *keyring) changeKeys(ctx context.Context, v *layout.Visit, by account.Holder) (newKey account.CreateKeyResponse, formError string, err error) {
	if err := v.SameSite(); err != nil {
		return newKey, "", err
	}

	// The page has two forms: a button of the list sends "revoke", the other form creates a key.
	if id := v.Form.Get("revoke"); id != "" {
		_, err = p.apiKeys.RevokeKey(ctx, by, id)
	} else {
		var r *account.CreateKeyResponse
		var role catalog.Role
		if err := role.UnmarshalText([]byte(v.Form.Get("role"))); err != nil {
			return newKey, "", err
		}
		days, _ := strconv.Atoi(v.Form.Get("days")) // 0, also for no number: the key does not expire
		r, err = p.apiKeys.CreateKey(ctx, by, account.CreateKeyRequest{Name: v.Form.Get("name"), Role: role, Expires: time.Duration(max(0, days)) * 24 * time.Hour})
		if err == nil {
			newKey = *r // the catalog has only its hash
		}
	}

	// Show an invalid or unknown value above the list. Other errors have a page of their own.
	if k := call.KindOf(err); k != nil && (k.Status == 400 || k.Status == 404) {
		v.Status = k.Status
		return newKey, err.Error(), nil
	}
	return newKey, "", err
}

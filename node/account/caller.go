package account

import (
	"cmp"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Caller describes who makes a request, without secrets, for the caller itself.
type Caller struct {
	Kind    string       `json:"kind"`           // one of the kinds below
	ID      string       `json:"id,omitzero"`    // of the account or key; "" for a guest and the operator
	Name    string       `json:"name"`           // for display
	Email   string       `json:"email,omitzero"` // of the account; "" without one
	Role    catalog.Role `json:"role"`
	By      string       `json:"by"`                 // how they signed in, one of the ways below
	KeyID   string       `json:"keyId,omitzero"`     // API key that they used or signed in with; "": none
	Expires time.Time    `json:"expiresAt,omitzero"` // end of the key or session; zero: never, or neither
}

// Kinds of callers.
const (
	CallerGuest    = "guest"    // not signed in
	CallerUser     = "user"     // an account
	CallerKey      = "key"      // a key without an account
	CallerOperator = "operator" // the operator of the node
)

// Ways to sign in.
const (
	ByNothing = "anonymous"
	BySession = "session"
	ByKey     = "key"
	BySocket  = "socket"
)

// Caller describes a viewer. It returns ErrUnauthenticated if the account, session or key no longer
// exists.
func (k *Keyring) Caller(v catalog.Viewer) (*Caller, error) {
	view := k.catalog.View()
	unauthenticated := call.Fail(call.ErrUnauthenticated, "Not authenticated")

	out := &Caller{Name: v.Name, Role: v.Role, KeyID: v.KeyID}
	if v.KeyID != "" {
		key := view.Key(v.KeyID)
		if key == nil {
			return nil, unauthenticated
		}
		out.Kind, out.ID, out.By, out.Expires = CallerKey, key.ID, ByKey, key.Expires
	}

	// The account decides before its key, because its rights count.
	if v.Account != "" {
		a := view.Account(v.Account)
		if a == nil || a.State != catalog.AccountActive {
			return nil, unauthenticated
		}
		out.Kind, out.ID, out.Name, out.Email = CallerUser, a.ID, cmp.Or(a.Name, a.Email), a.Email
	}

	// A session that was begun with a key also ends with the key.
	if v.Session != "" {
		x := view.Session(v.Session)
		if x == nil {
			return nil, unauthenticated
		}
		out.By = BySession
		if ends := sessionInfo(x).Ends; out.Expires.IsZero() || ends.Before(out.Expires) {
			out.Expires = ends
		}
	}

	switch {
	case out.Kind != "":
	case v.Role == catalog.RoleOwner:
		out.Kind, out.By = CallerOperator, BySocket
	case v.Role == catalog.RoleGuest:
		out.Kind, out.By = CallerGuest, ByNothing
	default:
		return nil, unauthenticated
	}
	return out, nil
}

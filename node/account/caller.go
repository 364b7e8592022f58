package account

import (
	"cmp"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Caller is who makes a request, as they may know it themselves: without a secret.
type Caller struct {
	Kind    string       `json:"kind"`           // of those below
	ID      string       `json:"id,omitzero"`    // of the account or the key; "" for a guest and the operator
	Name    string       `json:"name"`           // for people
	Email   string       `json:"email,omitzero"` // of the account; "" where it is none
	Role    catalog.Role `json:"role"`
	By      string       `json:"by"`                 // by what they came in, of those below
	KeyID   string       `json:"keyId,omitzero"`     // of the API key that they showed or signed in with; "" without one
	Expires time.Time    `json:"expiresAt,omitzero"` // when the key or session ends; zero: never, or it is neither
}

// What kinds of callers there are.
const (
	CallerGuest    = "guest"    // nobody in particular
	CallerUser     = "user"     // somebody with an account
	CallerKey      = "key"      // a key that belongs to no account
	CallerOperator = "operator" // whoever runs the node
)

// By what callers come in.
const (
	ByNothing = "anonymous"
	BySession = "session"
	ByKey     = "key"
	BySocket  = "socket"
)

// Caller tells somebody who was let in who they are. It fails with
// ErrUnauthenticated where the account, session or key has gone meanwhile.
func (k *Keyring) Caller(v catalog.Viewer) (*Caller, error) {
	view := k.catalog.View()
	gone := call.Fail(call.ErrUnauthenticated, "Not authenticated")

	out := &Caller{Name: v.Name, Role: v.Role, KeyID: v.KeyID}
	if v.KeyID != "" {
		key := view.Key(v.KeyID)
		if key == nil {
			return nil, gone
		}
		out.Kind, out.ID, out.By, out.Expires = CallerKey, key.ID, ByKey, key.Expires
	}

	// The account goes before its key: it is whose rights count.
	if v.Account != "" {
		a := view.Account(v.Account)
		if a == nil || a.State != catalog.AccountActive {
			return nil, gone
		}
		out.Kind, out.ID, out.Name, out.Email = CallerUser, a.ID, cmp.Or(a.Name, a.Email), a.Email
	}

	// A session that was begun with a key ends with it, too.
	if v.Session != "" {
		x := view.Session(v.Session)
		if x == nil {
			return nil, gone
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
		return nil, gone
	}
	return out, nil
}

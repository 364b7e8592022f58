package account

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// OperatorVariable is the variable that, if false, gives no rights to users of the socket in the
// data directory.
const OperatorVariable = "SHOAL_OPERATOR_SOCKET"

// HasOwner reports whether an owner could sign in without the operator: by a key, or to an active
// account by a password or a provider.
func HasOwner(view *catalog.View, now time.Time) bool {
	// The present role counts: a former owner's key does not.
	for key := range view.Keys() {
		v, ok := viewerOf(view, key)
		if ok && !key.Expired(now) && v.Role == catalog.RoleOwner {
			return true
		}
	}

	// Links and invitations do not count: they may never be used.
	for a := range view.Accounts() {
		owner := a.Role == catalog.RoleOwner && a.State == catalog.AccountActive
		byProvider := len(view.IdentitiesOf(a.ID)) > 0
		if owner && (view.PasswordOf(a.ID) != nil || byProvider) {
			return true
		}
	}
	return false
}

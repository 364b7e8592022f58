package account

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// OperatorVariable is false where whoever may open the socket in the data
// directory is not the operator.
const OperatorVariable = "SHOAL_OPERATOR_SOCKET"

// HasOwner tells whether an owner could come in at a time without the
// operator: by a key, or to an active account by a password or a provider.
func HasOwner(view *catalog.View, now time.Time) bool {
	// By what it is worth now: an owner's key of an account that is none any more does not count.
	for key := range view.Keys() {
		v, ok := viewerOf(view, key)
		if ok && !key.Expired(now) && v.Role == catalog.RoleOwner {
			return true
		}
	}

	// A link or an invitation is not counted: it may never be used.
	for a := range view.Accounts() {
		owner := a.Role == catalog.RoleOwner && a.State == catalog.AccountActive
		byProvider := len(view.IdentitiesOf(a.ID)) > 0
		if owner && (view.PasswordOf(a.ID) != nil || byProvider) {
			return true
		}
	}
	return false
}

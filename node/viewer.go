package node

import "time"

// Role is what a viewer may do. A role includes those below it.
type Role uint8

// The roles.
const (
	RoleNone   Role = iota // no access
	RoleGuest              // anonymous, where anonymous access is on: reads
	RoleMember             // a key: reads, manages own keys
	RoleOwner              // everything
)

// String names the role as in the API: guest, member, owner.
func (r Role) String() string {
	return [...]string{"none", "guest", "member", "owner"}[r&3]
}

// Viewer is on whose behalf an operation runs. The zero Viewer sees nothing.
type Viewer struct {
	Role  Role
	Name  string // of the account or the key, for logs
	KeyID string // "" without a key
}

// Guest is the anonymous viewer.
func Guest() Viewer { return Viewer{Role: RoleGuest, Name: "anonymous"} }

// Owner is the viewer of the host's own operator.
func Owner() Viewer { return Viewer{Role: RoleOwner, Name: "operator"} }

// KeyInfo describes an API key without its secret.
type KeyInfo struct {
	ID      string
	Name    string
	Role    Role
	Prefix  string // how the key begins, to recognise it
	Created time.Time
	Expires time.Time // zero: never
	Used    time.Time // last use, to the hour; zero: never
}

// CreateKeyRequest asks for a new API key.
type CreateKeyRequest struct {
	Name    string
	Role    Role          // RoleMember or RoleOwner; RoleNone means RoleMember
	Expires time.Duration // from now; 0 means never
}

// CreateKeyResponse carries the key, which is shown this once only.
type CreateKeyResponse struct {
	Key  string // shoal_<64 hex>
	Info KeyInfo
}

// KeysRequest asks for the list of keys.
type KeysRequest struct {
	Consistent bool // not older than any change that was confirmed; fails without a leader
}

// KeysResponse lists keys by name.
type KeysResponse struct{ Keys []KeyInfo }

// RevokeKeyRequest names a key by its ID or its name.
type RevokeKeyRequest struct{ Key string }

// RevokeKeyResponse describes the key that is gone.
type RevokeKeyResponse struct{ Info KeyInfo }

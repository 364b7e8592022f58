package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// Config is the configuration in force.
type Config struct {
	Raw   []byte // the bytes of the file, sealed (see SealedConfig); unsealed in old catalogs
	Hash  string // SHA-256 of the bytes of the file, hex
	Index uint64 // of the entry that set it; 0: none was set
	At    time.Time
	By    string // node that proposed it
}

// Connection is one connection of the configuration, with the state of its listings.
type Connection struct {
	Name     string
	Kind     string // as "github" or "git"
	Hash     string // of its definition; a change starts a sync
	Synced   string // Hash at the last complete listing
	SyncedAt time.Time
	Sync     uint64   // fence of the last complete listing; 0 before the first
	Repos    uint32   // listed by it
	Error    string   // of the last attempt; "" after success
	Warnings []string // of the last attempt

	Excluded []ReasonCount // by the last listing
	Held     uint32        // missing in the last listing, but not dropped yet
	HeldAt   time.Time     // since when all of them are missing; zero: none is held
	Accepted bool          // an owner accepted that they are gone

	Issues  []ListingIssue // of the last listing
	Kept    uint32         // missing in the last listing, but they still exist according to the host
	Account Account        // the host's account of the credential, after the last listing
	Again   time.Time      // when another listing may find what the last one lacks; zero: never

	HeldRepos []RepoID  // those that Held counts, sorted
	WholeAt   time.Time // end of the last listing without any failure

	RefusedAt time.Time // end of the first attempt since the last listing whose token the host refused; zero: none
	HiddenAt  time.Time // since when its repositories are hidden for that; zero: they are shown
}

// ConnectionID returns a number for clients that cannot use the name. It is at least 1, and the
// same on every node and in every cluster.
func ConnectionID(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint32(sum[:])>>1)
}

// ServeRefused is how long repositories of a connection stay visible after its host first refused
// the token. Whoever revoked the token may have meant to close them.
const ServeRefused = 30 * 24 * time.Hour

// HidesAt returns the time from which on another refusal hides the repositories of the connection.
// It is zero if no token is refused, or if they are hidden already.
func (c *Connection) HidesAt() time.Time {
	if c.RefusedAt.IsZero() || !c.HiddenAt.IsZero() {
		return time.Time{}
	}
	return c.RefusedAt.Add(ServeRefused)
}

// ListingIssue is one problem of a listing, for operators.
type ListingIssue struct {
	Code    string // one of a fixed set
	Target  string // the affected selection or repository; "": the whole connection
	Text    string // a sentence, without secrets
	Partial bool   // repositories of the target may be missing, and none of them is dropped

	Since time.Time // end of the first listing in a row with this issue
}

// Account is what a host reported about the credential of a request.
type Account struct {
	Calls     uint32    // made by this listing
	Limit     uint32    // calls per period; 0: unknown
	Remaining uint32    // calls left in the period
	Reset     time.Time // end of the period
	Expires   time.Time // of the credential; zero: unknown
}

// Role is what a viewer may do. Stored keys contain the numbers, which must never change. Their
// order has no meaning.
type Role uint8

// The roles.
const (
	RoleNone    Role = 0 // sees nothing
	RoleMember  Role = 1 // may search and read
	RoleOwner   Role = 2 // may also administer
	RoleGuest   Role = 3 // anonymous, if allowed: may search and read; keys never have it
	RoleMetrics Role = 4 // may read the metrics and nothing else; only keys without an account have it
)

// String names the role as in the API: none, guest, member, owner, metrics.
func (r Role) String() string { return nameOf(r, roleNames) }

var roleNames = []string{RoleNone: "none", RoleMember: "member", RoleOwner: "owner", RoleGuest: "guest", RoleMetrics: "metrics"}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(name []byte) error {
	*r = valueOf[Role](name, roleNames)
	return nil
}

// nameOf returns the name of a value, or that of 0 for an unknown value.
func nameOf[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return names[0]
}

// valueOf returns the value with a name, or 0 for an unknown name.
func valueOf[T ~uint8](name []byte, names []string) T {
	return T(max(0, slices.Index(names, string(name))))
}

// Key is an API key. The key's text is not stored.
type Key struct {
	ID      string // public, for lists and logs
	Hash    []byte // HMAC-SHA-256 of the key
	Name    string
	Role    Role
	Created time.Time
	By      string    // who created it
	Expires time.Time // zero: never
	Used    time.Time // last use, to about an hour; zero: never

	Account string // account id; "": made by an operator for a service
	All     bool   // sees every repository, whatever is enforced; only without an account
}

// Expired reports whether a key has expired at a time.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// MemberState is the state of a member.
type MemberState uint8

// The states of a member.
const (
	MemberAlive    MemberState = 1
	MemberDraining MemberState = 2 // moves its data to other nodes; takes no job
	MemberRemoved  MemberState = 3 // never comes back under this id
)

// Member is a node of the cluster. The catalog does not know whether it is reachable: gossip tells.
type Member struct {
	ID      string
	Number  uint32 // never reused; holdings name members by it
	Epoch   uint64 // identifies the start of the node: see NewEpoch
	Session uint64 // index of the entry that announced Epoch
	Addr    string // host:port for calls between nodes
	Gossip  string // host:port for gossip
	API     string // base URL of its API
	Zone    string
	Weight  uint32 // in hundredths
	Version string
	State   MemberState
	Since   time.Time // of State
	Joined  time.Time

	Permissions PermissionSync // from its environment

	// Levels that its program can apply; 0: it reports none.
	Lowest, Highest uint64
}

// Group tells which members should hold a placement group, or a slice of a large repository.
type Group struct {
	Number uint64 // below 4096 a placement group, else the key of a slice
	Epoch  uint64 // index of the entry that placed it
	Nodes  []uint32
}

// Holding tells which members have confirmed one shard file, side file or mirror.
type Holding struct {
	Key   string   // ShardKey or MirrorKey
	Nodes []uint32 // numbers of members, sorted
}

// Secret is a secret of the cluster, sealed by a key that is not in the catalog.
type Secret struct {
	Name   string
	Sealed []byte
	Index  uint64
}

// epochRandom is the number of random low bits in an epoch.
const epochRandom = 24

// NewEpoch returns the epoch of a node's start. The random bits distinguish a copy of a data
// directory from the original.
func NewEpoch(start uint64, random uint32) uint64 {
	return start<<epochRandom | uint64(random)&(1<<epochRandom-1)
}

// EpochStart returns the number of the start in an epoch, from 1.
func EpochStart(epoch uint64) uint64 { return epoch >> epochRandom }

package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// Config is the configuration that the cluster agreed on.
type Config struct {
	Raw   []byte // the bytes of the file, sealed (see SealedConfig); as they are in catalogs of before
	Hash  string // SHA-256 of the bytes of the file, hex
	Index uint64 // of the entry that set it; 0 when none was set
	At    time.Time
	By    string // node that proposed it
}

// Connection is one connection of the configuration and how its listing goes.
type Connection struct {
	Name     string
	Kind     string // as "github" or "git"
	Hash     string // of its definition: a change asks for a sync
	Synced   string // Hash at the last complete listing
	SyncedAt time.Time
	Sync     uint64   // fence of the last complete listing; 0 before the first
	Repos    uint32   // listed by it
	Error    string   // of the last attempt; empty when it was good
	Warnings []string // of the last attempt

	Excluded []ReasonCount // by the last listing
	Held     uint32        // missing in the last listing, and not let go yet
	HeldAt   time.Time     // since when all of them are; zero where nothing is held
	Accepted bool          // an owner says that what is missing is gone

	Issues  []ListingIssue // of the last listing
	Kept    uint32         // missing in the last listing, but not gone as far as the host tells
	Account Account        // of the credential, after the last listing
	Again   time.Time      // when what the last listing lacks is worth another; zero where time mends nothing

	HeldRepos []RepoID  // the Held ones, sorted
	WholeAt   time.Time // end of the last listing in which nothing failed

	RefusedAt time.Time // end of the first attempt since the last listing whose token the host refused; zero for none
	HiddenAt  time.Time // since when its repositories are hidden for that; zero while they are shown
}

// ConnectionID numbers a connection for clients that do not take its name: the same on
// every node and in every cluster, at least 1.
func ConnectionID(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint32(sum[:])>>1)
}

// ServeRefused is for how long the last listing of a connection is served whose
// token its host refuses: whoever revoked it may have meant that, and a token
// that nobody has replaced in that time is not missed.
const ServeRefused = 30 * 24 * time.Hour

// HidesAt is from when on an attempt whose token is refused hides the repositories
// of the connection; zero where no token is refused, and where they are hidden already.
func (c *Connection) HidesAt() time.Time {
	if c.RefusedAt.IsZero() || !c.HiddenAt.IsZero() {
		return time.Time{}
	}
	return c.RefusedAt.Add(ServeRefused)
}

// ListingIssue is one thing that an operator should know of a listing.
type ListingIssue struct {
	Code    string // one of a fixed set, for programs
	Target  string // the selection or repository that it is about; empty for the whole connection
	Text    string // a sentence, without secrets
	Partial bool   // repositories of the target may be missing, and none of them is let go

	Since time.Time // end of the first listing in a row that told it of the target
}

// Account is what a host said of the credential that it was asked with.
type Account struct {
	Calls     uint32    // made for the listing
	Limit     uint32    // calls of a period; 0 where the host does not say
	Remaining uint32    // of them
	Reset     time.Time // when the period ends
	Expires   time.Time // of the credential; zero where the host does not say
}

// Role is what a viewer may do. The numbers stand in keys and never change
// their meaning; their order says nothing.
type Role uint8

// The roles.
const (
	RoleNone   Role = 0 // sees nothing
	RoleMember Role = 1 // may search and read
	RoleOwner  Role = 2 // may also administer
	RoleGuest  Role = 3 // anonymous, where that is allowed: may search and read; never the role of a key
)

// String names the role as in the API: none, guest, member, owner.
func (r Role) String() string { return nameOf(r, roleNames) }

var roleNames = []string{RoleNone: "none", RoleMember: "member", RoleOwner: "owner", RoleGuest: "guest"}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(name []byte) error {
	*r = named[Role](name, roleNames)
	return nil
}

// nameOf is the name of a value, where names has one for each; that of 0 for an unknown value.
func nameOf[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return names[0]
}

// named is the value of a name; 0 for an unknown name.
func named[T ~uint8](name []byte, names []string) T {
	return T(max(0, slices.Index(names, string(name))))
}

// Key is an API key. The key itself is not kept.
type Key struct {
	ID      string // public, in lists and logs
	Hash    []byte // HMAC-SHA-256 of the key
	Name    string
	Role    Role
	Created time.Time
	By      string    // who created it
	Expires time.Time // zero: never
	Used    time.Time // last use, to the hour or so; zero: never

	Account string // whose it is; empty: of nobody, made by an operator for a service
	All     bool   // sees every repository, whatever is enforced; only of nobody's keys
}

// Expired reports whether a key is over at a time.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// MemberState is where a member is on its way.
type MemberState uint8

// The states of a member.
const (
	MemberAlive    MemberState = 1
	MemberDraining MemberState = 2 // gives away what it holds; takes no job
	MemberRemoved  MemberState = 3 // never comes back under this id
)

// Member is a node of the cluster. Whether it can be reached at this moment
// is not here: the cluster knows that from gossip.
type Member struct {
	ID      string
	Number  uint32 // small number, never reused; holders are named by it
	Epoch   uint64 // which start of the node: see NewEpoch
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

	Permissions PermissionSync // what its environment says

	// The levels that its program can apply; 0 of a program that reports none.
	Lowest, Highest uint64
}

// Group is the placement of one placement group or of a slice of a large
// repository: who should hold it.
type Group struct {
	Number uint64 // below 4096 a placement group, else the key of a slice
	Epoch  uint64 // index of the entry that placed it
	Nodes  []uint32
}

// Holding says which members have confirmed one shard file, side file
// or mirror.
type Holding struct {
	Key   string   // ShardKey or MirrorKey
	Nodes []uint32 // numbers of members, sorted
}

// Secret is a secret of the cluster, sealed by a key that the catalog does
// not know.
type Secret struct {
	Name   string
	Sealed []byte
	Index  uint64
}

// epochRandom is how many low bits of an epoch are random.
const epochRandom = 24

// NewEpoch is the epoch of a node's start: the number of the start, and random
// bits that tell a copy of a data directory from the original.
func NewEpoch(start uint64, random uint32) uint64 {
	return start<<epochRandom | uint64(random)&(1<<epochRandom-1)
}

// EpochStart is the number of the start in an epoch, from 1.
func EpochStart(epoch uint64) uint64 { return epoch >> epochRandom }

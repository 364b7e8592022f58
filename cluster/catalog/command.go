package catalog

import (
	"math"
	"time"
)

// Command is one change of the catalog. Only structs of this package implement it, always as
// pointers. Each has a number in the table of entry.go that never changes. New fields go to the end
// of a struct.
type Command interface{ apply(*txn) Result }

// Entry is what one raft entry carries: commands that are applied in order. A refused command
// changes nothing and does not stop the next one.
type Entry struct {
	Index    uint64    // from raft
	Request  [16]byte  // the same on a retry; zero: duplicates are not detected
	At       time.Time // by the clock of the proposer
	Node     string    // the proposer
	Commands []Command
}

// Result is the outcome of a command.
type Result struct {
	ID  uint64 // number of the repository, fence of the grant, number of the member
	Err *Refusal
}

// InitCluster is the first command of a cluster. It sets the cluster's id.
type InitCluster struct{ ID string }

// SetConfig replaces the configuration. NewSetConfig makes it. New and changed connections are
// listed again; removed ones lose their repositories. Result.ID is the index of the configuration
// in force.
type SetConfig struct {
	Raw         []byte // as in [Config]
	Hash        string
	Connections []ConnectionDef // sorted by name
	Instead     uint64          // index of the configuration in force when the file was read; 0: none; see InsteadOfAny
	// Careful refuses, as Held, a configuration that would drop more than a few repositories and
	// more than half of all. Entries older than this field are not careful.
	Careful bool
	Keep    time.Duration // how long the data of dropped repositories stays, besides the usual grace period
	// Renames lets a connection that only changes its name keep its repositories. In entries older
	// than this field such a connection drops them until it is listed again.
	Renames bool
}

// SealConfig replaces the bytes of the configuration with this hash by the same text, sealed under
// another key. It does nothing if the configuration has changed meanwhile.
type SealConfig struct {
	Hash string
	Raw  []byte // as in [Config], sealed
}

// InsteadOfAny lets a configuration replace any other one.
const InsteadOfAny = math.MaxUint64

// ConnectionDef is a connection as the configuration defines it.
type ConnectionDef struct{ Name, Kind, Hash string }

// EnqueueJob requests a job. A waiting job may become urgent. A job that has ended or failed waits
// again. A running one runs once more afterwards.
type EnqueueJob struct {
	Kind      JobKind
	Subject   string
	Urgent    bool
	NotBefore time.Time // zero: now
}

// GrantJob lets a node run a job. Result.ID is the fence.
type GrantJob struct {
	Kind     JobKind
	Subject  string
	Node     string
	Epoch    uint64
	Deadline time.Time
}

// FinishJob ends a job that failed, or that changes no other table.
type FinishJob struct {
	Kind      JobKind
	Subject   string
	Fence     uint64
	Error     string    // empty: success
	Permanent bool      // retrying is of no use
	NotBefore time.Time // of the next attempt after a failure

	TokenRefused bool // for a sync: the host refused the token
}

// ReleaseJob returns a job to the queue, because its node stops.
type ReleaseJob struct {
	Kind    JobKind
	Subject string
	Fence   uint64
}

// RevokeJob takes a job from a node that is lost or past the deadline.
type RevokeJob struct {
	Kind      JobKind
	Subject   string
	Fence     uint64
	Reason    string
	NotBefore time.Time
}

// CancelJob makes a job that has not ended fail for good, until it is requested again or its next
// time comes. The node that runs it loses it.
type CancelJob struct {
	Kind    JobKind
	Subject string
	Reason  string // becomes its error
}

// SyncPage is a part of a listing of a connection. It adds or updates repositories. Result.ID is
// how many were listed so far.
type SyncPage struct {
	Connection string
	Fence      uint64
	Repos      []ListedRepo // at most MaxPage
}

// ListedRepo is one repository of a listing.
type ListedRepo struct {
	Name string
	RepoFacts
	Target string // see RepoConnection
}

// MaxPage is the largest number of repositories in a SyncPage.
const MaxPage = 500

// FinishSync ends a listing. Only a complete one removes the connection from the repositories that
// it did not list. Complete means that all Listed repositories have arrived in pages.
type FinishSync struct {
	Connection string
	Fence      uint64
	Hash       string // hash of the connection's definition that was listed
	Complete   bool
	Listed     uint32 // distinct repositories in the pages
	Warnings   []string

	// Repositories that stay although they were not listed: their target was listed only in part,
	// or the host says that it still has them.
	Partial []string
	Kept    []RepoID

	Excluded []ReasonCount
	Held     uint32 // missing repositories that wait for a second listing or for an owner's decision

	Issues  []ListingIssue
	Account Account
	Again   time.Time // as in Connection

	HeldRepos []RepoID // the repositories that Held counts

	// Nothing means that the host has none of what the connection names. That does not prove that
	// the host accepts the token.
	Nothing bool
}

// FinishListing ends a listing whose pages hold only new or changed repositories. A repository that
// is not in a page stays, unless Gone names it. So a listing without news costs one entry, however
// many repositories it has.
type FinishListing struct {
	FinishSync        // Listed counts those in pages; Partial and Kept only inform
	Total      uint32 // distinct repositories that were listed, including unchanged ones
	Gone       []RepoID
}

// AcceptListing drops what listings of a connection miss. The next listing counts, however many
// repositories it misses.
type AcceptListing struct {
	Connection string
}

// ReasonCount is how many repositories a connection leaves out for a reason.
type ReasonCount struct {
	Reason string
	Count  uint32
}

// FinishIndex ends an index job: the repository switches to a new generation, all at once. With
// Unchanged only the time is recorded.
type FinishIndex struct {
	Repo          RepoID
	Fence         uint64
	Unchanged     bool
	InputKey      string
	Revisions     []Revision
	Shards        []ShardRef
	DefaultBranch string    // empty: as before
	PushedAt      time.Time // newest commit; zero: as before
	Holder        string    // node that has the files and the mirror
	Continue      bool      // the job goes on under the same fence and finishes again
	Second        string    // another node that has the files; empty: none
	LeftOut       uint32    // wanted revisions beyond the limit
}

// FinishCollect ends a collection job and removes the repository from the catalog. It is refused if
// a connection lists the repository again.
type FinishCollect struct {
	Repo  RepoID
	Fence uint64
}

// FinishPack ends a pack job. Each repository whose files in From are unchanged switches to the
// packs. Its generation stays the same, in another form. A repository that has changed, or that is
// being indexed, keeps its files. Result.ID is how many switched.
type FinishPack struct {
	Subject string
	Fence   uint64
	From    []string   // ids of the shard files that the packs replace
	Packs   []ShardRef // with the size of the whole file
	Repos   []PackedRepo
	Holder  string // node that has the packs
	Second  string // another node that has them; empty: none
}

// PackedRepo tells which files of a repository to replace, and by which parts of packs.
type PackedRepo struct {
	Repo   RepoID
	Was    uint64 // FilesHash of the replaced files
	Shares []PackShare
}

// PackShare is the part of a pack that belongs to one repository.
type PackShare struct {
	Pack uint32 // index in FinishPack.Packs
	Docs uint32
	Text int64
}

// CreateKey adds an API key.
type CreateKey struct{ Key Key }

// RevokeKey removes an API key, and the sessions that were begun with it.
type RevokeKey struct{ ID string }

// TouchKeys records when keys were last used.
type TouchKeys struct {
	IDs  []string
	Used time.Time
}

// PutMember adds a node, or updates its epoch, addresses, zone and weight. Other fields of Member
// are ignored, except ID. Result.ID is the member's number. It refuses a removed id, an older
// epoch, and another epoch of the same start, which means a copied data directory. A new epoch
// revokes the jobs that the node ran before.
type PutMember struct{ Member Member }

// SetMemberState drains a member or makes it alive again.
type SetMemberState struct {
	ID    string
	State MemberState
}

// RemoveMember removes a member for good, and all its holdings.
type RemoveMember struct{ ID string }

// Place sets which members should hold the groups.
type Place struct{ Groups []Group }

// Confirm reports what a node holds and what it has lost. It is refused unless Epoch is the
// member's.
type Confirm struct {
	Node  string
	Epoch uint64
	Held  []string // keys of holdings
	Lost  []string
}

// SetSecret stores a sealed secret. With IfAbsent an existing one stays.
type SetSecret struct {
	Name     string
	Sealed   []byte
	IfAbsent bool
}

// Noop only advances the clock of the catalog.
type Noop struct{}

// CheckHash carries the state hash that the proposer had after an earlier entry. Each node compares
// it with its own, and so notices when its state differs: see [State.Diverged]. It changes nothing.
// Result.ID is the hash before this entry.
type CheckHash struct {
	At   uint64 // index of the earlier entry; 0: compare nothing
	Hash uint64
}

package catalog

import (
	"math"
	"time"
)

// Command is one change of the catalog. The set of implementations is
// sealed: the structs of this file and of those named after what they
// change, always as pointers, each with a number
// in the table of entry.go that never changes. New fields go to the end.
type Command interface{ apply(*txn) Result }

// Entry is what one raft entry carries: commands that are applied one after
// the other. A refused command changes nothing and does not stop the next.
type Entry struct {
	Index    uint64    // from raft
	Request  [16]byte  // the same on a retry; zero: not remembered
	At       time.Time // by the clock of the proposer
	Node     string    // the proposer
	Commands []Command
}

// Result is what a command came to.
type Result struct {
	ID  uint64 // number of the repository, fence of the grant, number of the member
	Err *Refusal
}

// InitCluster is the first command of a cluster: it gives it its id.
type InitCluster struct{ ID string }

// SetConfig replaces the configuration. NewSetConfig makes it. Connections
// that are new or changed get a sync that waits; those that left take their
// listing with them. Result.ID is the index of the configuration in force.
type SetConfig struct {
	Raw         []byte // as in [Config]
	Hash        string
	Connections []ConnectionDef // sorted by name
	Instead     uint64          // index of the configuration that was in force when the file was read, 0 for none, or InsteadOfAny
	// Careful refuses a configuration, as Held, whose connections let go of
	// more than a few repositories and of more than half of them. Entries of
	// before the field are not careful.
	Careful bool
	Keep    time.Duration // how long the data of repositories that it lets go of stays, beside the usual grace period
	// Renames lets a connection that only gets another name keep what it has
	// listed. Entries of before the field let go of it until it is listed again.
	Renames bool
}

// SealConfig replaces the bytes of the configuration that has a hash by the
// same, sealed under another key. A configuration that has changed meanwhile
// stays as it is.
type SealConfig struct {
	Hash string
	Raw  []byte // as in [Config], sealed
}

// InsteadOfAny lets a configuration replace whichever is in force.
const InsteadOfAny = math.MaxUint64

// ConnectionDef is a connection as the configuration has it.
type ConnectionDef struct{ Name, Kind, Hash string }

// EnqueueJob asks for a job. One that is waiting becomes urgent if asked so,
// one in backoff or done waits again, a running one will run again after.
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

// FinishJob ends a job that changes nothing else, or that failed.
type FinishJob struct {
	Kind      JobKind
	Subject   string
	Fence     uint64
	Error     string    // empty: good
	Permanent bool      // no use to try again
	NotBefore time.Time // of the next attempt after a failure

	TokenRefused bool // of a sync: it failed since the host refuses the token
}

// ReleaseJob gives a job back: its node stops and nothing is wrong with it.
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

// CancelJob ends a job that waits, runs or is to be tried again: it fails for
// good, until somebody asks for it or its next time has come. Who runs it
// loses it.
type CancelJob struct {
	Kind    JobKind
	Subject string
	Reason  string // becomes its error
}

// SyncPage is a part of a listing of a connection. Repositories are made or
// brought up to date. Result.ID is how many were listed so far.
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

// FinishSync ends a listing. Only a complete one, all of whose Listed
// repositories have arrived in pages, takes the connection from repositories
// that it did not list.
type FinishSync struct {
	Connection string
	Fence      uint64
	Hash       string // of the connection's definition that was listed
	Complete   bool
	Listed     uint32 // distinct repositories in the pages
	Warnings   []string

	// Repositories that stay although they were not listed: their target was not listed in
	// whole, or the host says that it still has them.
	Partial []string
	Kept    []RepoID

	Excluded []ReasonCount
	Held     uint32 // repositories that are missing, and wait for a second listing or an owner's word

	Issues  []ListingIssue
	Account Account
	Again   time.Time // as in Connection

	HeldRepos []RepoID // the Held ones

	// Nothing is set where the host has none of what the connection names, which
	// does not prove that it takes the token.
	Nothing bool
}

// FinishListing is FinishSync for a listing whose pages have only what the
// catalog did not have as it was listed: what is not in them stays, but for what
// is named. So a listing in which nothing is new costs one entry, whatever it lists.
type FinishListing struct {
	FinishSync        // Listed is of the pages; Partial and Kept are told, and not needed
	Total      uint32 // distinct repositories that were listed, and those of targets that were not
	Gone       []RepoID
}

// AcceptListing lets go of what listings of a connection miss: the next one
// is believed, however many repositories it does not have.
type AcceptListing struct {
	Connection string
}

// ReasonCount is how many repositories a connection leaves out for a reason.
type ReasonCount struct {
	Reason string
	Count  uint32
}

// FinishIndex ends an index job: the repository switches to a new
// generation, all of it at once. With Unchanged only the time is noted.
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
	LeftOut       uint32    // revisions that are wanted, too, and are too many
}

// FinishCollect ends a collection: the repository leaves the catalog. It is
// refused when a connection lists the repository again.
type FinishCollect struct {
	Repo  RepoID
	Fence uint64
}

// FinishPack ends a pack job: each repository that still has the files of
// From as they were when the pack was made reads the packs in their place.
// That is another form of its generation, not a new one. Repositories that
// have changed since, or are being indexed, stay as they are. Result.ID is how
// many were switched.
type FinishPack struct {
	Subject string
	Fence   uint64
	From    []string   // ids of the shard files that the packs replace
	Packs   []ShardRef // with the size of the whole file
	Repos   []PackedRepo
	Holder  string // node that has the packs
	Second  string // another node that has them; empty: none
}

// PackedRepo is what a repository gets in place of its files in a pack.
type PackedRepo struct {
	Repo   RepoID
	Was    uint64 // FilesHash of those
	Shares []PackShare
}

// PackShare is the part of a pack that belongs to one repository.
type PackShare struct {
	Pack uint32 // in FinishPack.Packs
	Docs uint32
	Text int64
}

// CreateKey adds an API key.
type CreateKey struct{ Key Key }

// RevokeKey removes one, and the sessions that were begun with it.
type RevokeKey struct{ ID string }

// TouchKeys notes when keys were last used.
type TouchKeys struct {
	IDs  []string
	Used time.Time
}

// PutMember brings a node into the catalog, or its new epoch, addresses,
// zone and weight; of Member only ID, Epoch and those count. Result.ID is its
// number. Refused are a removed id, an epoch older than the one known, and
// another epoch of the same start: a copy of a data directory. A new epoch
// takes away the jobs that the node ran before.
type PutMember struct{ Member Member }

// SetMemberState drains a member or makes it alive again.
type SetMemberState struct {
	ID    string
	State MemberState
}

// RemoveMember removes a member for good and forgets what it holds.
type RemoveMember struct{ ID string }

// Place sets who should hold groups.
type Place struct{ Groups []Group }

// Confirm says what a node holds, and what it has lost. It is refused when
// Epoch is not that of the member.
type Confirm struct {
	Node  string
	Epoch uint64
	Held  []string // keys of holdings
	Lost  []string
}

// SetSecret stores a sealed secret; with IfAbsent only the first one.
type SetSecret struct {
	Name     string
	Sealed   []byte
	IfAbsent bool
}

// Noop changes nothing but the clock of the catalog.
type Noop struct{}

// CheckHash carries the state hash that the proposer had after an earlier entry.
// Each node compares it with its own after that entry, and so sees whether its
// state differs: see [State.Diverged]. It changes nothing. Result.ID is the hash
// before this entry.
type CheckHash struct {
	At   uint64 // index of the earlier entry; 0: nothing is compared
	Hash uint64
}

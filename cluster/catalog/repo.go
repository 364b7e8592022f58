package catalog

import "time"

// RepoID is the number of a repository, from 1. It is never reused.
type RepoID = uint32

// Repo is one repository. Records are immutable: callers must not change a record of a View, nor
// its slices.
type Repo struct {
	ID   RepoID
	Name string // unique, as github.com/owner/name or local/directory
	RepoFacts

	Connections []RepoConnection // those that list it, sorted by name; empty when orphaned
	CreatedAt   time.Time
	OrphanedAt  time.Time // since when no connection lists it; zero: one does

	// The generation that is searched. One command changes all of it.
	Generation   uint64 // from 1; 0: none yet
	GenerationAt uint64 // index of the entry that switched to it
	InputKey     string // hash of what it was built from: refs, commits, options; chosen by the builder
	Revisions    []Revision
	Shards       []ShardRef
	IndexedAt    time.Time

	Former []FormerName // oldest first; at most maxFormer

	KeptUntil time.Time // earliest deletion of the data of an orphan that the configuration dropped; else zero

	LeftOut uint32 // wanted revisions beyond the limit
}

// FormerName is a name of a repository before its host renamed it. It still leads to the repository
// for a while, unless another repository has it now.
type FormerName struct {
	Name string
	At   time.Time // of the change
}

// RepoFacts is what a code host says about a repository.
type RepoFacts struct {
	DisplayName   string
	HostKind      string // as "github"; "genericGitHost" for connections of kind git
	ExternalID    string // <kind>:<host>:<the host's own id>; the name if the host gives no id
	CloneURL      string // without credentials; file:// for a local directory
	WebURL        string // for browsers; may be empty
	DefaultBranch string // short name
	Topics        []string
	Fork          bool
	Archived      bool
	Public        bool
	Stars         uint32
	PushedAt      time.Time

	Description string
	Visibility  Visibility
	SizeBytes   uint64 // as the host computes it; 0: unknown
	Empty       bool   // according to the host it has no commit
	Unfetchable string // why it cannot be fetched now; "": it can
}

// Visibility tells who may see a repository at its host.
type Visibility uint8

// The visibilities. Stored records contain the numbers, which must never change.
const (
	VisibilityUnknown Visibility = 0
	Public            Visibility = 1 // everybody
	Internal          Visibility = 2 // everybody with an account there
	Private           Visibility = 3 // only people with access
)

// String returns the name of the visibility in the API, or "" if it is unknown.
func (v Visibility) String() string {
	return nameOf(v, []string{"", Public: "public", Internal: "internal", Private: "private"})
}

// RepoConnection is a connection's link to a repository that it lists.
type RepoConnection struct {
	Name string
	Seen uint64 // fence of the last sync that listed it
	// Target is the selection of the connection that contains the repository, as "orgs/acme"; "" if
	// the kind has no selections.
	Target string
}

// Revision is an indexed revision of a repository.
type Revision struct {
	Name   string // full ref name, or HEAD
	Commit string // hex
}

// ShardRef names a shard file of a generation.
type ShardRef struct {
	ID    string // SHA-256 of the bytes of the file, hex
	Dead  string // SHA-256 of the side file with its dead occurrences, hex; "": none
	Bytes int64  // size of the file; for a pack this repository's share
	Docs  uint32 // live documents
	Slice uint16 // number of the slice of the repository; 0: not sliced
	Text  int64  // bytes of this repository's text in the file
	// Symbols is the SHA-256 of the side file with its symbols, hex; "": none yet.
	Symbols string
	// Pack is the bytes of text of the whole file, if several repositories share it; otherwise 0.
	Pack int64
	// BuiltFor is the repository that the file was built for, if this one is a copy of it; otherwise 0.
	BuiltFor RepoID
}

// OwnBytes returns the bytes that the file adds to a node's index for this repository. For a copy they
// are 0, because the original counts the file.
func (s ShardRef) OwnBytes() int64 {
	if s.BuiltFor != 0 {
		return 0
	}
	return s.Bytes
}

// Indexed reports whether the repository has a generation to search.
func (r *Repo) Indexed() bool { return r.Generation > 0 }

// NoCommit reports whether the last index found no commit: the remote has no branch and no tag.
func (r *Repo) NoCommit() bool { return r.Indexed() && len(r.Revisions) == 0 }

// Orphaned reports whether no connection lists the repository. An orphan is not searched, and is
// deleted after the grace period.
func (r *Repo) Orphaned() bool { return len(r.Connections) == 0 }

// Local reports whether the remote is a directory, and not a host.
func (r *Repo) Local() bool { return isLocal(r.CloneURL) }

// Kept reports whether the data of a repository must stay: a connection lists it, or KeptUntil has
// not passed.
func (r *Repo) Kept(now time.Time) bool { return !r.Orphaned() || now.Before(r.KeptUntil) }

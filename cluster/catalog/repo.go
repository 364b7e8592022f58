package catalog

import "time"

// RepoID is the number of a repository. Numbers begin at 1, and the number
// of a repository that left is never given out again.
type RepoID = uint32

// Repo is one repository. Records are immutable: never change one that a
// View returned, nor its slices.
type Repo struct {
	ID   RepoID
	Name string // unique, as github.com/owner/name or local/directory
	RepoFacts

	Connections []RepoConnection // who lists it, sorted by name; empty when orphaned
	CreatedAt   time.Time
	OrphanedAt  time.Time // since when no connection lists it; zero while one does

	// The generation that is searched. All of it changes in one command.
	Generation   uint64 // number of the generation, from 1; 0 before the first
	GenerationAt uint64 // index of the entry that switched to it
	InputKey     string // what it was built from: refs, commits, options; chosen by the builder
	Revisions    []Revision
	Shards       []ShardRef
	IndexedAt    time.Time

	Former []FormerName // oldest first; at most maxFormer

	KeptUntil time.Time // when orphaned by the configuration: its data stays until then; else zero

	LeftOut uint32 // revisions that connections ask for beyond the most that are indexed
}

// FormerName is a name that a repository had until its host renamed it. It
// still leads to the repository for a while, unless another one has it now.
type FormerName struct {
	Name string
	At   time.Time // of the change
}

// RepoFacts is what a code host says of a repository.
type RepoFacts struct {
	DisplayName   string
	HostKind      string // as "github", or "genericGitHost" for connections of kind git
	ExternalID    string // <kind>:<host>:<the host's own id>; the name where the host gives none
	CloneURL      string // without credentials; file:// for a local directory
	WebURL        string // for people; empty when there is none
	DefaultBranch string // short name
	Topics        []string
	Fork          bool
	Archived      bool
	Public        bool
	Stars         uint32
	PushedAt      time.Time

	Description string
	Visibility  Visibility
	SizeBytes   uint64 // as the host computes it; 0 where it does not
	Empty       bool   // the host says that it has no commit
	Unfetchable string // why it cannot be fetched now; empty where it can
}

// Visibility is who may see a repository at its host.
type Visibility uint8

// The visibilities. The numbers stand in records and never change.
const (
	VisibilityUnknown Visibility = 0
	Public            Visibility = 1 // everybody
	Internal          Visibility = 2 // whoever has an account there
	Private           Visibility = 3 // whom it is granted to
)

// String names the visibility as in the API; nothing for one that is unknown.
func (v Visibility) String() string {
	return nameOf(v, []string{"", Public: "public", Internal: "internal", Private: "private"})
}

// RepoConnection is one connection that lists a repository.
type RepoConnection struct {
	Name string
	Seen uint64 // fence of the sync that listed it last
	// Target is the selection of the connection that it came by, as
	// "orgs/acme"; empty where the kind has none.
	Target string
}

// Revision is an indexed revision of a repository.
type Revision struct {
	Name   string // full ref name, or HEAD
	Commit string // hex
}

// ShardRef names one shard file of a generation.
type ShardRef struct {
	ID    string // SHA-256 of the bytes of the file, hex
	Dead  string // SHA-256 of the side file with its dead occurrences, hex; empty when none
	Bytes int64  // size of the file; of a pack this repository's share
	Docs  uint32 // documents that are alive
	Slice uint16 // number of the slice of the repository, 0 when it is not sliced
	Text  int64  // bytes of this repository's text that it indexes
	// Symbols is the SHA-256 of the side file with its symbols, hex; empty
	// when there are none yet.
	Symbols string
	// Pack is the bytes of text of the whole file where several repositories
	// share it; 0 for a file of this repository alone.
	Pack int64
}

// Indexed reports whether the repository has a generation to search.
func (r *Repo) Indexed() bool { return r.Generation > 0 }

// NoCommit reports whether the last index found no commit: the remote has no branch and no tag.
func (r *Repo) NoCommit() bool { return r.Indexed() && len(r.Revisions) == 0 }

// Orphaned reports whether no connection lists the repository any more. Such a
// repository is not searched, and leaves after the grace period.
func (r *Repo) Orphaned() bool { return len(r.Connections) == 0 }

// Kept reports whether the data of a repository is to be there at a time: some
// connection lists it, or it is kept for one that may come back.
func (r *Repo) Kept(now time.Time) bool { return !r.Orphaned() || now.Before(r.KeptUntil) }

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
}

// RepoFacts is what a code host says of a repository.
type RepoFacts struct {
	DisplayName   string
	HostKind      string // kind of the connection that listed it, as "github" or "git"
	ExternalID    string // the host's own id
	CloneURL      string // without credentials; file:// for a local directory
	WebURL        string // for people; empty when there is none
	DefaultBranch string // short name
	Topics        []string
	Fork          bool
	Archived      bool
	Public        bool
	Stars         uint32
	PushedAt      time.Time
}

// RepoConnection is one connection that lists a repository.
type RepoConnection struct {
	Name string
	Seen uint64 // fence of the sync that listed it last
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

// Indexed tells whether the repository has a generation to search.
func (r *Repo) Indexed() bool { return r.Generation > 0 }

// Orphaned tells whether no connection lists the repository any more. Such a
// repository is not searched, and leaves after the grace period.
func (r *Repo) Orphaned() bool { return len(r.Connections) == 0 }

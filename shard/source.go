package shard

import (
	"cmp"
	"context"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// Repository describes a repository in a shard. The name only orders results; other layers know the
// names and links that people see.
type Repository struct {
	ID        uint32 // id in the catalog
	Name      string
	Revisions []Revision // have at most 64 distinct commits
}

// Revision is one indexed state of a repository. Revisions with the same commit share a bit, so
// HEAD needs no bit of its own.
type Revision struct {
	Name   string // "HEAD" or a full ref name
	Commit string // hex
	Bit    uint8  // bit in masks, below 64
	Time   time.Time
}

// Blob is one distinct content with all of its occurrences.
type Blob struct {
	OID         string // hex
	Size        int64  // bytes
	Occurrences []Occurrence
}

// Occurrence is a path at which some revisions of a repository have a blob. If two occurrences in a
// shard have the same repository and path, their masks do not overlap.
type Occurrence struct {
	Repo int    // index into [Source.Repositories]
	Path string // bytes as git has them
	Mask uint64 // the bits of the revisions that have it
}

// Source is the input of a build. The builder calls its methods from one goroutine, Repositories
// and Blobs first.
type Source interface {
	// Repositories returns one repository for a shard of its own, several for a pack.
	Repositories() []Repository
	// Blobs returns every unique blob once, in any order.
	Blobs() []Blob
	// Read calls use with the content of Blobs()[i] for each i in want, in the order of want. The
	// content is valid only during the call. If use fails, Read returns that error. It also fails
	// if it cannot read a blob.
	Read(ctx context.Context, want []int, use func(i int, content []byte) error) error
}

// BuildOptions are the settings of a build. The same source with the same options gives the same
// bytes. The zero value means the documented defaults.
type BuildOptions struct {
	MaxFileSize int64                  // bytes; larger files are kept by name only; 0 means 2 MiB
	MaxTrigrams int                    // distinct trigrams of a file; 0 means 20,000
	Always      func(path string) bool // files to which the two limits do not apply; nil means none
	SliceBytes  int64                  // bytes of text in one shard file; one document may exceed it; 0 means 512 MiB
	Workers     int                    // goroutines; 0 means GOMAXPROCS
	Progress    func(done, total int64)
	DeltaLimit  int     // if a repository has that many shards, Update rewrites small ones; 0 means 8
	DeadLimit   float64 // Update rewrites a shard with a greater share of dead documents; 0 means 0.25

	known    map[string]form // by blob id, when packing: how the document was indexed before; its content is UTF-8
	versions file.Versions   // versions of the files; zero means the newest
}

// Built describes a shard file that a build has written, or one repository's share of it.
type Built struct {
	Part
	Bytes       int64 // bytes of the file; in a pack the repository's share by text
	TextBytes   int64 // bytes of the repository's documents
	Documents   int   // number of the repository's documents
	Occurrences int
	Skipped     int   // documents of the file that are kept by name only
	Pack        int64 // bytes of text of the whole file if it has several repositories, else 0
}

// share is how much of a file belongs to a repository.
type share struct {
	text      int64
	documents int
}

// add adds a document with that many bytes of text to the share.
func (s *share) add(textBytes int64) {
	s.text += textBytes
	s.documents++
}

// describe returns the Built of a part with this share, in a file of size bytes. Of a file of several
// repositories each has the bytes in proportion to its text.
func (s *share) describe(part Part, size int64, m *meta) Built {
	b := Built{Part: part, Bytes: size, TextBytes: s.text, Documents: s.documents}
	if len(m.repos) > 1 {
		b.Pack = max(m.textBytes, 1)
	}
	if len(m.repos) > 1 || part.BuiltFor != 0 {
		b.Bytes = int64(float64(size) * float64(s.text) / float64(max(m.textBytes, 1)))
	}
	return b
}

// Part is a shard file with the side files that change how it is read, for one of the repositories
// in it. A generation of a repository, which is a state of its index, consists of parts.
type Part struct {
	Repo    uint32 // id of the repository
	Shard   FileID // of [KindShard]
	Dead    FileID // of [KindDead]: what a later generation changed about the repository; zero means none
	Symbols FileID // of [KindSymbols]: the symbols of the documents; zero means none yet

	// BuiltFor is the repository whose documents these are in the shard, if it is another one, of
	// which Repo is a copy; 0 means Repo. Such a part always has a .dead file.
	BuiltFor uint32
}

// ownerInShard returns the id of the repository that the part has in its shard file.
func (p Part) ownerInShard() uint32 { return cmp.Or(p.BuiltFor, p.Repo) }

// AsCopy returns the part as that of a repository that is a copy of the part's, for [Set.Update].
func (p Part) AsCopy(repo uint32) Part {
	part := Part{Repo: repo, Shard: p.Shard, Symbols: p.Symbols}
	if owner := p.ownerInShard(); owner != repo {
		part.BuiltFor = owner
	}
	return part
}

// GroupKey identifies the group of a part among all groups.
type GroupKey struct {
	Shard, Symbols FileID
	Copy           uint32 // the repository, if the shard was built for another one
}

// GroupKey returns the key of the group of the part. Repositories of one pack are searched
// together. A copy of a repository reads the same documents in another way, so it is searched alone.
func (p Part) GroupKey() GroupKey {
	k := GroupKey{Shard: p.Shard, Symbols: p.Symbols}
	if p.BuiltFor != 0 {
		k.Copy = p.Repo
	}
	return k
}

// Files returns the names of the files of the part.
func (p Part) Files() []string {
	files := []string{p.Shard.Name(KindShard)}
	if !p.Dead.IsZero() {
		files = append(files, p.Dead.Name(KindDead))
	}
	if !p.Symbols.IsZero() {
		files = append(files, p.Symbols.Name(KindSymbols))
	}
	return files
}

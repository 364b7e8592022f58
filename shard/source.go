package shard

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// Repository is what a shard knows of a repository beside its files. The names and
// links that people see are joined to results elsewhere; the name here only orders
// results.
type Repository struct {
	ID        uint32 // number in the catalog
	Name      string
	Revisions []Revision // of at most 64 distinct commits
}

// Revision is one indexed state of a repository. Revisions of the same commit share
// a bit, so HEAD takes none of its own.
type Revision struct {
	Name   string // "HEAD" or a full ref name
	Commit string // hex
	Bit    uint8  // of masks, below 64
	Time   time.Time
}

// Blob is one distinct content and every place where it occurs.
type Blob struct {
	OID         string // hex
	Size        int64  // bytes
	Occurrences []Occurrence
}

// Occurrence is a place of a blob: a path of one repository in some of its
// revisions. Two occurrences of one shard never have the same repository,
// path and an overlapping mask.
type Occurrence struct {
	Repo int    // index into [Source.Repositories]
	Path string // bytes as git has them
	Mask uint64 // the bits of the revisions that have it
}

// Source is what a shard is built from. Its methods are called from one
// goroutine, Repositories and Blobs first.
type Source interface {
	// Repositories lists the repositories, one for a shard of its own, several
	// for a pack.
	Repositories() []Repository
	// Blobs lists every unique blob once, in any order.
	Blobs() []Blob
	// Read hands the contents of Blobs()[i] for each i of want to use, in the
	// order of want. The content is only valid during the call. An error of
	// use ends the reading and is returned as it is. A blob that cannot be
	// read is an error.
	Read(ctx context.Context, want []int, use func(i int, content []byte) error) error
}

// BuildOptions are the settings of a build. The same source and options give
// the same bytes. The zero value has the documented defaults.
type BuildOptions struct {
	MaxFileSize int64                  // bytes; larger files are kept by name only; 0 means 2 MiB
	MaxTrigrams int                    // distinct trigrams of a file; 0 means 20,000
	Always      func(path string) bool // files to which the two limits do not apply; nil means none
	SliceBytes  int64                  // text of one shard file, exceeded by at most one document; 0 means 512 MiB
	Workers     int                    // goroutines; 0 means GOMAXPROCS
	Progress    func(done, total int64)
	DeltaLimit  int     // shards of one repository before Update folds; 0 means 8
	DeadLimit   float64 // share of dead documents before Update folds; 0 means 0.25

	known    map[string]form // by blob id, when packing: the contents are decoded already
	versions file.Versions   // of the files; zero means the newest
}

// Built describes a shard file that a build has written, or the share that one
// repository has in it.
type Built struct {
	Part
	Bytes       int64 // of the file; of a pack in proportion to the text
	TextBytes   int64 // of the documents that the repository has
	Documents   int   // that the repository has
	Occurrences int
	Skipped     int   // documents of the file that are kept by name only
	Pack        int64 // bytes of text of the whole file where it is one of several repositories, else 0
}

// share is how much a repository has of a file.
type share struct {
	text      int64
	documents int
}

// add counts a document with so much text.
func (s *share) add(text int64) {
	s.text += text
	s.documents++
}

// built describes the share in a file of so many bytes.
func (s *share) built(part Part, size int64, m *meta) Built {
	b := Built{Part: part, Bytes: size, TextBytes: s.text, Documents: s.documents}
	if len(m.repos) > 1 {
		b.Pack = max(m.textBytes, 1)
		b.Bytes = int64(float64(size) * float64(s.text) / float64(b.Pack))
	}
	return b
}

// Part is one piece of a repository's generation: a shard file, for one of
// the repositories in it, with the side files that change how it is read.
type Part struct {
	Repo    uint32 // number of the repository
	Shard   FileID // of [KindShard]
	Dead    FileID // of [KindDead]; zero for none: what a later generation changed about this repository
	Symbols FileID // of [KindSymbols]; zero for none yet: the symbols of the documents
}

// Files lists the names of the files of the part.
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

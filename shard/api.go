package shard

import (
	"context"
	"errors"

	"github.com/shoalsearch/shoal/shard/query"
)

// ErrDamaged is the kind of every error that tells of bytes which are not
// what was written: the file is quarantined and must be built or copied anew.
var ErrDamaged = errors.New("damaged shard file")

// Request is one search.
type Request struct {
	Q            query.Q // And, Or, Not, Const, Text, Lang, Rev and Repos
	MaxMatches   int     // matches shown at most, over all files; 0 means 1,000
	MaxFiles     int     // files shown at most; 0 means no limit of its own
	Shards       int     // files of shards that the whole search asks, here and on other nodes; 0 means one
	CountAll     bool    // count every match and file, also those that are not shown
	ContextLines int     // lines around a match in its chunk
	Whole        bool    // give the whole content of each file
	NoChunks     bool    // give files without chunks, for listings
	// Rank gives the name by which a repository is ordered and how recent it
	// is, from 0 to 1. Nil means the name in the shard and 0.
	Rank func(repo uint32) (name string, recency float64)
	// MemoryLimit bounds the bytes of the answer and of what is held on the
	// way; 0 means 256 MiB. Reaching it sets Cut.
	MemoryLimit int64
}

// Definition is a symbol and the line that defines it, on its way from the
// tagger: the names are valid during the call that hands them over.
type Definition struct {
	Name       []byte
	Kind       string
	ParentName []byte
	ParentKind string
	Line       uint32 // from 1
}

// Untagged is a text whose definitions are wanted.
type Untagged struct {
	Path     string
	Language string // as in [File.Language]
	Content  []byte
}

// Tagger calls use with the definitions in each text, in any order, and then
// done with the number of the text; an error there makes them void. It is
// called from several goroutines. Its own error ends the whole.
type Tagger func(ctx context.Context, texts []Untagged, use func(Definition), done func(i int, err error)) error

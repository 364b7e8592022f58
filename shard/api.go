package shard

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

// ErrDamaged is the kind of every error that tells of bytes which are not
// what was written: the file is quarantined and must be built or copied anew.
var ErrDamaged = errors.New("damaged shard file")

var errTodo = errors.New("not built yet")

// Build writes the shard files of a source into dir: one, or several slices
// where the text is over SliceBytes. With several repositories it gives one
// Built for each repository and file. Files appear under their final names
// only when complete and synced.
func Build(ctx context.Context, dir string, src Source, opt BuildOptions) ([]Built, error) {
	return nil, errTodo
}

// Set is the shard files of one node. It is safe for concurrent use.
type Set struct{}

// SetOptions are the settings of a Set.
type SetOptions struct {
	Workers int // cores that searches may use together; 0 means GOMAXPROCS
	Now     func() time.Time
	// Damaged, when not nil, is told of each file that was found damaged and
	// moved into quarantine. It is called on a goroutine of its own.
	Damaged func(name string, err error)
}

// OpenSet opens the files that lie in dir, which is made if it is missing.
// Files left half-written by a crash are removed; files that fail their
// header check are quarantined.
func OpenSet(dir string, opt SetOptions) (*Set, error) { return nil, errTodo }

// Close waits for the readers to leave and unmaps every file.
func (s *Set) Close() error { return nil }

// Dir is the directory of the set, where Build must write.
func (s *Set) Dir() string { return "" }

// Names lists the files of the set, sorted.
func (s *Set) Names() []string { return nil }

// Has tells whether the set holds a file.
func (s *Set) Has(name string) bool { return false }

// Bytes is the size of all files together.
func (s *Set) Bytes() int64 { return 0 }

// Add opens files that were put into the directory, by Build or by Import.
// A name that is already open is fine.
func (s *Set) Add(names ...string) error { return errTodo }

// Import copies a file from r, checks that its bytes have the hash of its
// name, and adds it. A wrong hash is ErrDamaged and leaves nothing behind.
func (s *Set) Import(ctx context.Context, name string, r io.Reader) error { return errTodo }

// Export opens a file for copying to another node, with its size.
func (s *Set) Export(name string) (io.ReadCloser, int64, error) { return nil, 0, errTodo }

// Retain is garbage collection: files for which live says no, and that are
// older than grace in that state, leave the set at once and are deleted when
// their last reader is done. Call it again and again; it gives the names that
// were removed.
func (s *Set) Retain(live func(name string) bool, grace time.Duration) (removed []string, err error) {
	return nil, errTodo
}

// Verify reads every byte of a file and compares it with its name; a damaged
// file is quarantined.
func (s *Set) Verify(ctx context.Context, name string) error { return errTodo }

// Acquire gives a view of exactly the parts that the set holds, and the parts
// of which a file is missing. The view must be released.
func (s *Set) Acquire(parts []Part) (v *View, missing []Part) { return nil, parts }

// View is a fixed list of parts to search. It is safe for concurrent use.
type View struct{}

// Release gives the files back. The view must not be used afterwards; what
// its searches returned stays valid.
func (v *View) Release() {}

// Request is one search.
type Request struct {
	Q            query.Q // And, Or, Not, Const, Text, Lang, Rev and Repos
	MaxMatches   int     // matches shown at most, over all files; 0 means 1,000
	MaxFiles     int     // files shown at most; 0 means no limit of its own
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

// Search answers r from the parts of the view. The context's end stops it
// soon: a deadline gives what was found so far with Cut, a cancellation gives
// the context's error. A damaged file is quarantined and its parts are listed
// in Result.Failed.
func (v *View) Search(ctx context.Context, r Request) (*Result, error) { return nil, errTodo }

// Update writes the next generation of the one repository of src, given the
// parts of the present one: it reads only the blobs that the present parts
// do not have at the same path, and writes side files for what they lose. It
// folds everything into new shards when that has become cheaper. The parts of
// the answer replace all of old.
func (s *Set) Update(ctx context.Context, old []Part, src Source, opt BuildOptions) ([]Built, error) {
	return nil, errTodo
}

// Definition is a symbol and the line that defines it.
type Definition struct {
	Symbol
	Line uint32 // from 1
}

// Tagger finds the definitions in one text. It is called from several
// goroutines. Language is as in [File.Language].
type Tagger func(ctx context.Context, path, language string, content []byte) ([]Definition, error)

// Symbolize writes the symbols side of a part and gives the part with it. An
// error of tag for one file costs the symbols of that file; only the end of
// ctx ends the whole. Documents whose symbols are known from known parts are
// copied instead of read.
func (s *Set) Symbolize(ctx context.Context, p Part, known []Part, tag Tagger) (Part, error) {
	return p, errTodo
}

package git

import (
	"context"
	"iter"
)

// Kind is what a tree holds at a path.
type Kind uint8

// The kinds of entries.
const (
	File Kind = iota
	Executable
	Symlink // its content is the target
	Dir
	Submodule // its OID is a commit of another repository
)

// Entry is one line of a tree.
type Entry struct {
	Path string // from the root, bytes as git has them
	Kind Kind
	OID  string // hex
	Size int64  // bytes of a blob; -1 for others
}

// Tree yields the files and symlinks of a commit, all levels, in the order
// of git; submodules are left out. It ends at the first error.
func (m *Mirror) Tree(ctx context.Context, commit string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, ErrEmpty) }
}

// Occurrence is a path that holds a blob in some of the commits.
type Occurrence struct {
	Path    string
	Kind    Kind
	Commits uint64 // bit i: in commits[i]
}

// Blob is one content and everywhere it occurs.
type Blob struct {
	OID         string // hex
	Size        int64
	Occurrences []Occurrence
}

// Union lists the distinct blobs of up to 64 commits, in the order of the
// first commit that has them (and there of git), with their paths. Subtrees
// that several commits share are listed once.
func (m *Mirror) Union(ctx context.Context, commits []string) ([]Blob, error) {
	return nil, ErrEmpty
}

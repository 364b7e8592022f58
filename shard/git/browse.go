package git

import (
	"context"
	"time"
)

// Resolve makes a commit id of a ref: HEAD, a branch or tag by short or full
// name, a full or unique prefix of a commit id (4 digits and more), each
// with suffixes such as ~3 and ^2. An empty ref is HEAD. The ref can not be
// an option or name anything but a commit.
func (m *Mirror) Resolve(ctx context.Context, ref string) (commit string, err error) {
	return "", ErrNoRef
}

// Source is a file, or a part of it.
type Source struct {
	Path      string
	OID       string // of the blob, hex
	Kind      Kind
	Size      int64 // of the whole file, bytes
	Content   []byte
	FirstLine int  // of Content, from 1
	Lines     int  // whole or cut lines in Content
	Total     int  // lines of the file; -1 when the reading stopped before its end
	Binary    bool // a NUL byte among the first 8,000
	Cut       bool // a limit ended Content before what was asked for
	LFS       bool // the content is a pointer of Git LFS, not the file
}

// SourceOptions says which part of a file is wanted. The zero value is all
// of it, up to 64 MiB.
type SourceOptions struct {
	FirstLine int   // from 1; 0 is 1
	Lines     int   // 0 is all
	MaxBytes  int64 // of Content; 0 is 64 MiB
	Count     bool  // read on to the end for Total
}

// Source reads a file of a commit.
func (m *Mirror) Source(ctx context.Context, commit, path string, o SourceOptions) (Source, error) {
	return Source{}, ErrNoPath
}

// ListOptions says what of a tree is wanted.
type ListOptions struct {
	Depth int // levels below the path; 0 is 1, negative all
	Max   int // entries; 0 is 100,000
	Sizes bool
}

// List lists a directory: its entries and those below to a depth, a level
// at a time, directories before files, each in byte order. Paths are from
// the root. cut tells that Max left something out.
func (m *Mirror) List(ctx context.Context, commit, path string, o ListOptions) (entries []Entry, cut bool, err error) {
	return nil, false, ErrNoPath
}

// Commit is a commit.
type Commit struct {
	Hash        string
	Parents     []string
	AuthorName  string
	AuthorEmail string
	AuthorTime  time.Time
	CommitTime  time.Time
	Subject     string
	Body        string
	Refs        []string // full names of branches and tags that point at it
}

// LogQuery selects commits.
type LogQuery struct {
	Commit string // where to begin, an id
	Path   string // only commits that change it
	Query  string // in the message, without regard to case; a literal
	Author string // in name or e-mail, without regard to case; a literal
	Since  time.Time
	Until  time.Time
	Skip   int
	Limit  int // 0 is 50
}

// LogPage is a page of commits, newest first.
type LogPage struct {
	Commits []Commit
	Total   int  // of all pages
	AtLeast bool // counting ended early: there are Total or more
}

// Log lists commits.
func (m *Mirror) Log(ctx context.Context, q LogQuery) (LogPage, error) {
	return LogPage{}, ErrNoRef
}

// Show returns one commit.
func (m *Mirror) Show(ctx context.Context, commit string) (Commit, error) {
	return Commit{}, ErrNoRef
}

// Author is who wrote commits.
type Author struct {
	Name, Email string
	Commits     int
}

// Authors counts the commits of each author, of a path or of all, most
// first, then by name and e-mail.
func (m *Mirror) Authors(ctx context.Context, commit, path string) ([]Author, error) {
	return nil, ErrNoRef
}

// Ref is a branch or a tag.
type Ref struct {
	Name   string // short
	Full   string // refs/heads/... or refs/tags/...
	Commit string
	Time   time.Time // of the commit
	Head   bool      // the default branch
}

// Branches lists the branches, newest commit first, then by name.
func (m *Mirror) Branches(ctx context.Context) ([]Ref, error) { return nil, ErrEmpty }

// Tags lists the tags that lead to a commit, newest commit first, then by
// name.
func (m *Mirror) Tags(ctx context.Context) ([]Ref, error) { return nil, ErrEmpty }

// DiffRange is a run of lines.
type DiffRange struct{ Start, Lines int }

// Hunk is one change in a file. Body holds its lines, each with its first
// byte ' ', '+', '-' or '\'.
type Hunk struct {
	Old, New DiffRange
	Heading  string
	Body     string
}

// FileDiff is what changed in a file.
type FileDiff struct {
	OldPath  string // empty when added
	NewPath  string // empty when deleted
	Status   byte   // A, M, D, R, C, T
	Binary   bool
	Added    int // lines
	Removed  int
	Hunks    []Hunk
	Cut      bool // some hunks were left out
	OldMode  string
	NewMode  string
	SameText bool // only mode or name changed
}

// DiffOptions bounds a diff. The zero value has the defaults.
type DiffOptions struct {
	Path     string
	Context  int // lines around a change; 0 is 3, negative none
	MaxBytes int // of hunks; 0 is 16 MiB
	MaxFiles int // 0 is 10,000
}

// Diff is the difference of two commits.
type Diff struct {
	Files []FileDiff
	Cut   bool // a limit left something out
}

// Diff compares two commits directly (two dots), renames found.
func (m *Mirror) Diff(ctx context.Context, base, head string, o DiffOptions) (Diff, error) {
	return Diff{}, ErrNoRef
}

// BlameRange is a run of lines that one commit brought.
type BlameRange struct {
	Commit string
	Path   string // in that commit
	First  int    // line of the file, from 1
	Lines  int
}

// BlameCommit is a commit of a blame.
type BlameCommit struct {
	Hash, Summary           string
	AuthorName, AuthorEmail string
	AuthorTime              time.Time
	PreviousHash            string // where the lines were before; may be empty
	PreviousPath            string
}

// Blame is who wrote each line of a file.
type Blame struct {
	Ranges  []BlameRange
	Commits map[string]BlameCommit
}

// Blame tells who wrote the lines of a file.
func (m *Mirror) Blame(ctx context.Context, commit, path string) (Blame, error) {
	return Blame{}, ErrNoPath
}

// Package query is the query language. It parses a text into a tree, simplifies the tree in small
// passes, and prints it as a text again.
//
//	foo (bar or baz) -file:_test\.go$
//
//	And
//	├── Text "foo"
//	├── Or ── Text "bar", Text "baz"
//	└── Not ── Text /_test\.go$/ in the file name
//
// The package does not know how to search. A root resolves conditions on repositories into sets of
// ids ([Resolve]). Leaves get only And, Or, Not, Const, Text, Lang, Rev and Repos.
package query

import (
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// Q is a node of a query tree. Only this package implements it. A tree is immutable once built and
// safe for concurrent use.
type Q interface {
	// String returns the node in a canonical form, for tests and logs.
	String() string
	isQ()
}

// And is true if all of Subs are true. An empty And is always true.
type And struct{ Subs []Q }

// Or is true if one of Subs is true. An empty Or is never true.
type Or struct{ Subs []Q }

// Not is true if Sub is false.
type Not struct{ Sub Q }

// Const is always true or always false.
type Const bool

// Field is the part of a document in which a Text is searched.
type Field uint8

// The fields of a document.
const (
	Content Field = iota // the text of the file
	Name                 // its path
	Symbol               // the names of the symbols defined in it
)

// The fields of a commit, and of a file that it changed.
const (
	Added     Field = iota + Symbol + 1 // the lines that the commit added
	Removed                             // the lines that it removed
	Message                             // its message
	Author                              // who wrote it, as "Ann <ann@example.com>"
	Committer                           // who committed it
)

// Text is a pattern that a field of a document or commit must contain.
type Text struct {
	Pattern string // a literal; with Regexp an expression in RE2 syntax
	Regexp  bool
	Fold    bool // ignore case
	Field   Field

	WordBegins, WordEnds bool // a match must begin or end a word; see match.Options
}

// Lang is true for documents in one language. Name is go-enry's name of the language, or "skipped"
// for files that are kept by name only.
type Lang struct{ Name string }

// Rev is true for occurrences of a document in the revisions that Pattern names: "HEAD", a short or
// full ref name, a glob, a prefix of an indexed commit, or "*".
type Rev struct{ Pattern string }

// Repo is true for repositories whose name matches an expression.
type Repo struct {
	Pattern string
	Fold    bool
}

// RepoSet is true for repositories with one of these exact names.
type RepoSet struct{ Names []string }

// Context is true for the repositories of a search context.
type Context struct{ Name string }

// Flag is true for repositories with a property.
type Flag struct {
	Kind  FlagKind
	Value string // archived, fork: yes, no, only; visibility: public, internal, private (not public), any
}

// FlagKind names a property of a repository.
type FlagKind uint8

// The values of FlagKind.
const (
	Archived FlagKind = iota
	Fork
	Visibility
)

// Dates is true for commits from Since on, up to Until. A zero time is no bound.
type Dates struct{ Since, Until time.Time }

// Merge is true for commits with several parents (only), with fewer (no), or for all (yes).
type Merge struct{ Value string }

// Repos is true for the repositories whose ids are in Set. The root makes it from Repo, RepoSet,
// Context and Flag. Set is read-only.
type Repos struct{ Set *roaring.Bitmap }

func (*And) isQ()     {}
func (*Or) isQ()      {}
func (*Not) isQ()     {}
func (Const) isQ()    {}
func (*Text) isQ()    {}
func (*Lang) isQ()    {}
func (*Rev) isQ()     {}
func (*Repo) isQ()    {}
func (*RepoSet) isQ() {}
func (*Context) isQ() {}
func (*Flag) isQ()    {}
func (*Repos) isQ()   {}
func (*Dates) isQ()   {}
func (*Merge) isQ()   {}

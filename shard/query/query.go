// Package query is the query language: a text becomes a tree, small passes improve the
// tree, and it prints back as a text.
//
//	foo (bar or baz) -file:_test\.go$
//
//	And
//	├── Text "foo"
//	├── Or ── Text "bar", Text "baz"
//	└── Not ── Text /_test\.go$/ in the file name
//
// The package does not know how anything is found. A root resolves the atoms about
// repositories into sets of numbers ([Resolve]); a leaf sees And, Or, Not, Const, Text,
// Lang, Rev and Repos only.
package query

import "github.com/RoaringBitmap/roaring/v2"

// Q is a node of a query tree. The set of implementations is sealed. A tree
// is immutable once built and safe for concurrent use.
type Q interface {
	// String prints the node in a canonical form, for tests and logs.
	String() string
	isQ()
}

// And holds where all of Subs hold. An empty And holds everywhere.
type And struct{ Subs []Q }

// Or holds where one of Subs holds. An empty Or holds nowhere.
type Or struct{ Subs []Q }

// Not holds where Sub does not.
type Not struct{ Sub Q }

// Const holds everywhere or nowhere.
type Const bool

// Field is where a Text is looked for.
type Field uint8

// The fields of a document.
const (
	Content Field = iota // the text of the file
	Name                 // its path
	Symbol               // the names of the symbols defined in it
)

// Text is a pattern to be found in a field of a document.
type Text struct {
	Pattern string // a literal, or an expression in RE2 syntax when Regexp
	Regexp  bool
	Fold    bool // letters match in either case
	Field   Field

	WordBegins, WordEnds bool // a match begins or ends a word: as in match.Options
}

// Lang holds for documents of one language: the canonical name of go-enry,
// or "skipped" for files kept by name only.
type Lang struct{ Name string }

// Rev holds for the occurrences of a document in the revisions that Pattern names:
// "HEAD", a short or full ref name, a glob, a prefix of an indexed commit, or "*".
type Rev struct{ Pattern string }

// Repo holds for repositories whose name matches an expression.
type Repo struct {
	Pattern string
	Fold    bool
}

// RepoSet holds for repositories named exactly.
type RepoSet struct{ Names []string }

// Context holds for the repositories of a search context.
type Context struct{ Name string }

// Flag holds for repositories by a property.
type Flag struct {
	Kind  FlagKind
	Value string // archived, fork: yes, no, only; visibility: public, internal, private (all that is not public), any
}

// FlagKind names a property of a repository.
type FlagKind uint8

// The properties of a repository that a query can ask for.
const (
	Archived FlagKind = iota
	Fork
	Visibility
)

// Repos holds for the repositories with a number in Set: the root makes it of Repo,
// RepoSet, Context and Flag. Set is read-only.
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

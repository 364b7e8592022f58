package query

import (
	"fmt"
	"time"
)

// Options are the defaults of a query, set beside its text; case: and
// quoting in the text win over them.
type Options struct {
	Regexp        bool // bare words and quoted texts are regular expressions
	CaseSensitive bool // letters match exactly; regular expressions of files, repositories and symbols too
}

// Query is a parsed query text.
type Query struct {
	Q       Q             // what is searched
	Count   int           // count: NoCount, CountAll, or 1 and more
	Timeout time.Duration // timeout:, zero when not given
	Type    Type          // type:
}

// The special values of Query.Count.
const (
	NoCount  = -1 // no count: in the text
	CountAll = 0  // count:all, every match and file is counted
)

// Type is what a query returns.
type Type uint8

// The types of results.
const (
	AnyType  Type = iota // no type: in the text: files with their matches
	FileType             // type:file, names of the files that match
	RepoType             // type:repo, the repositories that have a match
)

// ParseError is a query that cannot be understood.
type ParseError struct {
	Offset   int    // in bytes, from 0, in the text
	Expected string // what would have been right there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("at byte %d: expected %s", e.Offset, e.Expected)
}

// Parse reads a query text in the language of decisions.md §4. An error is
// always a *ParseError. Where an arm has no Rev, one for HEAD is added, so
// that below the parser nothing is implied.
func Parse(text string, opt Options) (*Query, error) {
	return &Query{Q: Const(true), Count: NoCount}, nil
}

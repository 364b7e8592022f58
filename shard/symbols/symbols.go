package symbols

import (
	"context"

	"github.com/shoalsearch/shoal/shard/file"
)

// Symbol is a definition found by universal-ctags.
type Symbol struct {
	Name, Kind             string
	ParentName, ParentKind string
}

// Definition is a symbol and the line that defines it, on its way from the
// tagger: the names are valid during the call that hands them over.
type Definition struct {
	Name       []byte
	Kind       string
	ParentName []byte
	ParentKind string
	Line       uint32 // from 1
	End        uint32 // its last line; 0 where that is not known
}

// Untagged is a text whose definitions are still to be found.
type Untagged struct {
	Path     string
	Language string // as go-enry names it
	Content  []byte
	Tries    int // attempts that failed: the more there were, the more time the next has
}

// Tagger calls use with the definitions in each text, in any order, and then done with the
// index of the text. An error given to done voids the definitions: those of the text are not
// known. done may come again for a text that is tried again; the last time counts. A Tagger is
// called from several goroutines. Its own error ends the whole.
type Tagger func(ctx context.Context, texts []Untagged, use func(Definition), done func(i int, err error)) error

// Key is what the symbols of a document depend on.
type Key struct {
	Language string
	OID      string // of the blob
}

// Texts are the documents of a shard, by numbers from 0. Its functions are called from
// several goroutines.
type Texts struct {
	Shard string // name of the file of the shard
	Count int
	Bytes int64 // of all texts together

	Versions file.Versions // of the file that is written

	// Key returns the key of a document; false if it has no text.
	Key func(doc int) (Key, bool)

	// Reader returns a function for one goroutine that appends the text of a document to dst,
	// and returns its path.
	Reader func() func(doc int, dst []byte) (text []byte, path string, err error)
}

// Known is an older file of symbols and the texts that it was made of. The symbols of a
// document with the same key are copied from it.
type Known struct {
	File  *File
	Texts Texts
}

// Unknown is a document whose symbols are not known, as the program that finds them failed.
type Unknown struct {
	Doc   int
	Tries int // attempts that failed
}

// MaxName is the longest stored name in bytes. People write no longer ones, and a page must have
// room for it.
const MaxName = 1024

// maxKind is the longest kind that is believed, in bytes.
const maxKind = 100

// maxOffset is the greatest offset of a symbol.
const maxOffset = 256 << 20

// The sections of a file of symbols.
const (
	secMeta file.SectionID = 1 + iota
	secPageEnd
	secPageSize
	secPageName
	secFirstEnd
	secFirst
	secPages
	secRefEnd
	secRefs
	secDocEnd
	secDocs
	secParents
	secCodes
	secDict
	secExtentEnd
	secExtents
	secUnknown
	secPostings file.SectionID = 1 << 12 // of the first segment; the others follow
)

// IsWord reports whether a byte may be part of a name.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// IsBorder reports whether a word begins or ends between two bytes.
func IsBorder(before, after byte) bool { return !IsWord(before) || !IsWord(after) }

var newline = []byte{'\n'}

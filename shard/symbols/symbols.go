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

// Definition is a symbol and the line that defines it, as the tagger reports it. Name and
// ParentName are valid only during the call that passes them.
type Definition struct {
	Name       []byte
	Kind       string
	ParentName []byte
	ParentKind string
	Line       uint32 // from 1
	End        uint32 // its last line; 0 where that is not known
}

// Untagged is a text whose definitions the tagger shall find.
type Untagged struct {
	Path     string
	Language string // as go-enry names it
	Content  []byte
	Tries    int // attempts that failed; each gives the next attempt more time
}

// Tagger finds the definitions in texts. For each text it calls use with its definitions, in any
// order, and then done with the index of the text. If err is not nil, these definitions are
// dropped, and the symbols of the text stay unknown. If the Tagger tries a text again, it calls use
// and done again, and the last call of done counts. Several goroutines call a Tagger. If it returns
// an error, [Write] fails.
type Tagger func(ctx context.Context, texts []Untagged, use func(Definition), done func(i int, err error)) error

// Key is what the symbols of a document depend on.
type Key struct {
	Language string
	OID      string // of the blob
}

// Texts are the documents of a shard, numbered from 0. Several goroutines call its functions.
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

// Known is an older file of symbols and the texts that it was made of. Write copies from it the
// symbols of documents with the same key.
type Known struct {
	File  *File
	Texts Texts
}

// Unknown is a document whose symbols are not known, as the program that finds them failed.
type Unknown struct {
	Doc   int
	Tries int // attempts that failed
}

// MaxName is the length of the longest stored name in bytes. People write no longer names, and a
// page must have room for the longest.
const MaxName = 1024

// maxKind is the length of the longest kind in bytes. "" replaces longer kinds.
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
	secPostings file.SectionID = 1 << 12 // postings of the first segment; those of the others follow
)

// IsWord reports whether a byte may be part of a name.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// IsBorder reports whether a word begins or ends between two bytes.
func IsBorder(before, after byte) bool { return !IsWord(before) || !IsWord(after) }

var newline = []byte{'\n'}

package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// ID is the identity of a file of the index: the SHA-256 of its bytes. The
// zero value stands for no file.
type ID [sha256.Size]byte

// Kind says what a file of the index holds. A kind of file is a row of
// the table kinds.
type Kind uint32

// The kinds of files. Their numbers stand in the heads of the files.
const (
	KindShard   Kind = 1 + iota // text, its postings and its places
	KindDead                    // what a later generation changed about one repository of a shard
	KindSymbols                 // the symbols of the documents of a shard
)

// kinds gives for each kind the end of its names.
var kinds = [...]string{KindShard: ".shard", KindDead: ".dead", KindSymbols: ".symbols"}

// ParseID is the inverse of [ID.String].
func ParseID(digits string) (ID, error) {
	var id ID
	if digits == "" {
		return id, nil
	}
	if len(digits) != hex.EncodedLen(len(id)) || strings.Trim(digits, "0123456789abcdef") != "" {
		return ID{}, fmt.Errorf("id of an index file %q: want 64 lower-case hex digits: %w", digits, fs.ErrInvalid)
	}

	_, err := hex.Decode(id[:], []byte(digits))
	return id, err
}

// ParseName is the inverse of [ID.Name]. ok is false for everything that is not the name
// of a file of the index: nothing else is ever opened.
func ParseName(name string) (id ID, kind Kind, ok bool) {
	for kind := KindShard; kind <= KindSymbols; kind++ {
		digits, found := strings.CutSuffix(name, kinds[kind])
		if !found {
			continue
		}
		id, err := ParseID(digits)
		return id, kind, err == nil && !id.IsZero()
	}
	return ID{}, 0, false
}

// IsZero reports whether the id stands for no file.
func (id ID) IsZero() bool { return id == ID{} }

// String is the id in lower-case hex digits, 64 of them; none for no file.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// Name is the name of the file of a kind in the directory of a set, and
// between nodes: "<sha256 in hex>.shard", ".dead" or ".symbols"; empty for no file.
func (id ID) Name(kind Kind) string {
	if id.IsZero() {
		return ""
	}
	return id.String() + kinds[kind]
}

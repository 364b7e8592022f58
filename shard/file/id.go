package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// ID identifies an index file: it is the SHA-256 of its bytes. The zero value means no file.
type ID [sha256.Size]byte

// Kind says what an index file contains. The table kinds has an entry for each.
type Kind uint32

// The kinds of files. The head of each file contains its number.
const (
	KindShard   Kind = 1 + iota // text, its postings and its places
	KindDead                    // what a later generation changed about one repository of a shard
	KindSymbols                 // the symbols of the documents of a shard
	KindChanges                 // what commits changed; such files are in a directory of their own, and are not sent to other nodes
)

// kinds maps each kind to the end of its file names.
var kinds = [...]string{KindShard: ".shard", KindDead: ".dead", KindSymbols: ".symbols", KindChanges: ".changes"}

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

// ParseName is the inverse of [ID.Name]. ok is false if name is not the name of an index file of a
// set. Files with other names in the directory of a set are never opened.
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

// IsZero reports whether the id is the zero id, which means no file.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the id as 64 lower-case hex digits; "" for the zero id.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// Name returns the name of the file with this id and kind, in the directory of a set and between
// nodes: "<sha256 in hex>.shard", ".dead" or ".symbols"; "" for the zero id.
func (id ID) Name(kind Kind) string {
	if id.IsZero() {
		return ""
	}
	return id.String() + kinds[kind]
}

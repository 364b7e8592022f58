package shard

import "github.com/shoalsearch/shoal/shard/file"

// FileID is the identity of a file of the index: the SHA-256 of its bytes. The
// zero value stands for no file.
type FileID = file.ID

// FileKind says what a file of the index holds.
type FileKind = file.Kind

// The kinds of files.
const (
	KindShard   = file.KindShard   // text, its postings and its places
	KindDead    = file.KindDead    // what a later generation changed about one repository of a shard
	KindSymbols = file.KindSymbols // the symbols of the documents of a shard
)

// ParseFileID is the inverse of [file.ID.String].
func ParseFileID(digits string) (FileID, error) { return file.ParseID(digits) }

// ParseFileName is the inverse of [file.ID.Name]. ok is false for everything that is
// not the name of a file of the index.
func ParseFileName(name string) (id FileID, kind FileKind, ok bool) { return file.ParseName(name) }

package shard

import (
	"bytes"
	"fmt"
)

// skip is why a document has no content in the index.
type skip uint8

const (
	indexed skip = iota
	skippedBinary
	skippedLarge
	skippedTrigrams
)

// SkippedBinary is [File.Skipped] of a binary file.
const SkippedBinary = "binary file"

// reason returns the words of File.Skipped, "" for indexed.
func (s skip) reason() string {
	switch s {
	case skippedBinary:
		return SkippedBinary
	case skippedLarge:
		return "larger than the maximum file size"
	case skippedTrigrams:
		return "more distinct trigrams than the maximum"
	}
	return ""
}

// The defaults of BuildOptions.
const (
	defaultMaxFileSize = 2 << 20
	defaultMaxTrigrams = 20_000
	defaultSliceBytes  = 512 << 20
	defaultDeltaLimit  = 8
	defaultDeadLimit   = 0.25
	// maxDocument is the largest document whatever the options say: the postings
	// of a document are in one segment.
	maxDocument = 256 << 20
)

// withDefaults fills in the defaults that BuildOptions documents.
func (o BuildOptions) withDefaults() BuildOptions {
	// What is kept by name only.
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = defaultMaxFileSize
	}
	if o.MaxTrigrams <= 0 {
		o.MaxTrigrams = defaultMaxTrigrams
	}

	// How large shards get, and when they are made anew.
	if o.SliceBytes <= 0 {
		o.SliceBytes = defaultSliceBytes
	}
	if o.DeltaLimit <= 0 {
		o.DeltaLimit = defaultDeltaLimit
	}
	if o.DeadLimit <= 0 {
		o.DeadLimit = defaultDeadLimit
	}

	if o.Always == nil {
		o.Always = func(string) bool { return false }
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// binaryHead is how many bytes of a file decide whether it is binary.
const binaryHead = 8000

// isBinary reports whether a file is binary, as git decides it: by a NUL in its
// first 8,000 bytes.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), binaryHead)], 0) >= 0
}

// errBlob says which blob an error of indexing is about.
func errBlob(oid string, err error) error { return fmt.Errorf("index blob %s: %w", oid, err) }

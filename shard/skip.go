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

// reason says it in words, for File.Skipped. maxima are those of the build.
func (s skip) reason() string {
	switch s {
	case skippedBinary:
		return "binary file"
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
	// maxDocument is the largest document whatever the options say: the
	// postings keep a document inside one segment.
	maxDocument = 256 << 20
)

func (o BuildOptions) withDefaults() BuildOptions {
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = defaultMaxFileSize
	}
	if o.MaxTrigrams <= 0 {
		o.MaxTrigrams = defaultMaxTrigrams
	}
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

// isBinary tells text from the rest as git and other indexers do: by NUL.
func isBinary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 }

func errBlob(oid string, err error) error { return fmt.Errorf("index blob %s: %w", oid, err) }

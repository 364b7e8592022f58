package shard

import (
	"fmt"
	"math"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/file"
)

// skip is the reason why a document has no content in the index.
type skip uint8

const (
	indexed skip = iota
	skippedBinary
	skippedLarge
	skippedTrigrams
)

// SkippedBinary is [File.Skipped] of a binary file.
const SkippedBinary = "binary file"

// reason returns the words for File.Skipped; "" for indexed.
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

// form is an entry of secDocSkip: why the content of a document is not in the index, and the
// encoding of its bytes in git. Content in the index is UTF-8.
type form struct {
	skip    skip
	charset charset.Encoding
}

// byte encodes a form in one byte: the reason in the lower four bits, the encoding above. formOf is
// its inverse.
func (f form) byte() byte { return byte(f.skip) | byte(f.charset)<<4 }

func formOf(b byte) form { return form{skip(b & 15), charset.Encoding(b >> 4)} }

// The defaults of BuildOptions.
const (
	defaultMaxFileSize = 2 << 20
	defaultMaxTrigrams = 20_000
	defaultSliceBytes  = 512 << 20
	defaultDeltaLimit  = 8
	defaultDeadLimit   = 0.25
	// maxDocument is the largest document, whatever the options say: the postings of a document
	// must fit into one segment.
	maxDocument = 256 << 20
)

// withDefaults fills in the defaults that BuildOptions documents.
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

	if o.versions == (file.Versions{}) {
		o.versions = file.Release.Written(math.MaxUint64)
	}
	if o.Always == nil {
		o.Always = func(string) bool { return false }
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// blobError adds the blob to an error of indexing.
func blobError(oid string, err error) error { return fmt.Errorf("index blob %s: %w", oid, err) }

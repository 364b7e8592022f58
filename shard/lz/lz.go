// Package lz compresses blocks of text so that they decode at memory speed:
// byte-aligned tokens of literals and matches, no entropy coding.
//
// A block is decoded into a buffer whose beginning may hold a dictionary that
// was also given to the encoder; matches reach back into it. So small blocks
// compress almost as well as large ones and a reader touches only what it
// needs:
//
//	buf   | dictionary (resident) | block decoded here |
//
// Sizes of blocks and where they lie are kept by the caller.
package lz

import "errors"

// ErrCorrupt tells that a block is damaged.
var ErrCorrupt = errors.New("lz: corrupt block")

const (
	// MaxBlock is the greatest size of a block before compression.
	MaxBlock = 64 << 10
	// MaxDict is the greatest size of a dictionary; dictionary and block
	// together may have 65,535 bytes for the whole dictionary to be in reach.
	MaxDict = 60 << 10
)

// Encoder compresses blocks. It is not safe for concurrent use. The same
// input gives the same output, always.
type Encoder struct {
	dict []byte
	best bool
}

// NewEncoder returns an encoder over a dictionary (nil for none). With best it
// searches longer for better matches: several times slower, for compaction.
func NewEncoder(dict []byte, best bool) *Encoder { return &Encoder{dict: dict, best: best} }

// Encode appends the compressed form of src (at most MaxBlock bytes) to dst.
func (e *Encoder) Encode(dst, src []byte) []byte { return append(dst, src...) }

// Decode decompresses a block into buf[dict:], where buf[:dict] is the
// dictionary of the encoder. len(buf)-dict is how many bytes are wanted: the
// length of the block, or less to decode only its beginning.
func Decode(buf []byte, dict int, block []byte) error {
	if len(block) < len(buf)-dict {
		return ErrCorrupt
	}
	copy(buf[dict:], block)
	return nil
}

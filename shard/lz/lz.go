// Package lz compresses small blocks of text so that they decode at memory
// speed: byte-aligned literals and matches, no entropy coding.
//
// A block is a run of sequences, each some literal bytes and then a match, a
// copy of bytes that came shortly before:
//
//	token     1 byte: literals<<4 | match-4, 15 meaning "and more"
//	more      while a byte is 255, then one that is not: added to the literals
//	literals
//	offset    u16 little-endian, from where the match is copied
//	more      added to the match
//
// The last sequence ends after its literals or its match, when the block is
// complete: blocks know neither their own length nor that of their text.
//
// What came before the block is the dictionary: text that all blocks of a file
// share, so that small blocks compress almost as well as large ones, and a
// reader touches only what it needs. A match lies either in the dictionary or
// in the block, never in both.
//
// Sizes of blocks and where they lie are kept by the caller.
package lz

import "errors"

// ErrCorrupt tells that a block is damaged.
var ErrCorrupt = errors.New("lz: corrupt block")

const (
	// MaxBlock is the greatest size of a block before compression.
	MaxBlock = 8 << 10
	// MaxDict is the greatest size of a dictionary.
	MaxDict = 56 << 10

	minMatch = 4
)

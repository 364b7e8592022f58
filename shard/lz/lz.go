// Package lz compresses small blocks of text so that they decode at memory
// speed: byte-aligned literals and matches, no entropy coding.
//
// A text is a series of sequences: some literal bytes and then a match, a copy of
// bytes that came shortly before. After the last match more literals may follow. A
// block is two streams, so that where a sequence begins does not depend on the
// sequence before:
//
//	count     u16 little-endian: of the records
//	records   3 bytes each: a token, and the offset u16, from how far back the
//	          match is copied
//	literals  of all sequences, to the end of the block
//
// A token gives the number of literals and the length of the match:
//
//	literals<<4 | length-4        up to 15 literals, a match of 4 to 18
//	                              bytes, or 19 without literals
//	(length-19)<<4 | 15           no literals, a match of 20 to 32 bytes
//	255                           any: both lengths are in the stream of literals,
//	                              in front of those of the sequence
//
// There stand the number of literals and the length less 4, each as bytes to be
// added up, of which all but the last are 255. A match that overlaps its own copy
// and is from less than 16 bytes before is always written that way: all others can
// be copied 16 bytes at once.
//
// A worked example, the text "go func go func main" without a dictionary:
//
//	01 00           one record
//	84 08 00        8 literals, then a match of 4+4 = 8 bytes from 8 bytes before
//	67 6f 20 66 75 6e 63 20  6d 61 69 6e      "go func " and, after the match, "main"
//
// What came before the block is the dictionary: text that all blocks of a file
// share, so that small blocks compress almost as well as large ones, and a
// reader touches only what it needs. A match lies either in the dictionary or
// in the block, never in both.
//
// Sizes of blocks and where they lie are kept by the caller.
package lz

import "errors"

// ErrCorrupt reports that a block is damaged.
var ErrCorrupt = errors.New("lz: corrupt block")

const (
	// MaxBlock is the greatest size of a block before compression.
	MaxBlock = 8 << 10
	// MaxDict is the greatest size of a dictionary.
	MaxDict = 56 << 10
	// Slack is how many bytes after a text [Decode] may overwrite.
	Slack = 48

	minMatch     = 4
	recordBytes  = 3
	wide         = 16 // bytes copied at once
	maxShort     = 15 // literals told by a token
	maxShortCopy = 32 // bytes of a match told by a token
	escape       = 0xff
)

// lengths gives for each token the literals and, in the upper byte, the length of the
// match. tokens is the inverse, by literals and length: escape if no token has them.
var (
	lengths = makeLengths()
	tokens  = makeTokens()
)

func makeLengths() (t [256]uint16) {
	for token := range t {
		lit, length := token>>4, token&15+minMatch
		if token&15 == 15 && lit > 0 {
			lit, length = 0, min(lit+19, maxShortCopy)
		}
		t[token] = uint16(lit | length<<8)
	}
	return t
}

func makeTokens() (t [maxShort + 1][maxShortCopy + 1]uint8) {
	for lit := range t {
		for length := range t[lit] {
			t[lit][length] = escape
		}
	}

	// Downward, so that of several tokens for the same lengths the smallest is left.
	for token := escape - 1; token >= 0; token-- {
		l := lengths[token]
		t[l&0xff][l>>8] = uint8(token)
	}
	return t
}

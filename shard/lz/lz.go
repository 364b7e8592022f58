// Package lz compresses small blocks of text so that they decode at memory
// speed: byte-aligned literals and matches, no entropy coding.
//
// A text is a series of sequences. A sequence is some literal bytes and then a match, which is a
// copy of earlier bytes. More literals may follow after the last match. A block has two streams, so
// that the start of a sequence does not depend on the sequence before:
//
//	count     u16 little-endian: number of records
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
// After a token of 255, the stream of literals has two numbers: the number of literals, and the
// length less 4. Each is a series of bytes whose sum is the number. All but the last byte are 255. A match is always written in this way if it overlaps
// its own copy and begins less than 16 bytes before it. All other matches can be copied 16 bytes at
// once.
//
// A worked example, the text "go func go func main" without a dictionary:
//
//	01 00           one record
//	84 08 00        8 literals, then a match of 4+4 = 8 bytes from 8 bytes before
//	67 6f 20 66 75 6e 63 20  6d 61 69 6e      "go func " and, after the match, "main"
//
// The dictionary is a text that all blocks of a file share. Matches may copy from it as if it stood
// before the block. So small blocks compress almost as well as large ones, and a reader decodes only what it needs. A match lies
// either in the dictionary or in the block, never in both.
//
// The caller stores the sizes and offsets of blocks.
package lz

import "errors"

// ErrCorrupt reports that a block is damaged.
var ErrCorrupt = errors.New("lz: corrupt block")

const (
	// MaxBlock is the maximum size of a block before compression.
	MaxBlock = 8 << 10
	// MaxDict is the maximum size of a dictionary.
	MaxDict = 56 << 10
	// Slack is how many bytes after a text [Decode] may overwrite.
	Slack = 48

	minMatch         = 4
	recordBytes      = 3
	wideCopy         = 16 // bytes that the decoder copies at once
	maxTokenLiterals = 15 // literals that a token can encode
	maxTokenMatch    = 32 // bytes of a match that a token can encode
	escape           = 0xff
)

// lengths maps each token to its number of literals and, in the upper byte, the length of its
// match. tokens is the inverse, by literals and length; escape if no token encodes them.
var (
	lengths = makeLengths()
	tokens  = makeTokens()
)

// makeLengths returns the lengths that each token byte encodes.
func makeLengths() (t [256]uint16) {
	for token := range t {
		lit, length := token>>4, token&15+minMatch
		if token&15 == 15 && lit > 0 {
			lit, length = 0, min(lit+19, maxTokenMatch)
		}
		t[token] = uint16(lit | length<<8)
	}
	return t
}

// makeTokens returns the token byte for each pair of short lengths.
func makeTokens() (t [maxTokenLiterals + 1][maxTokenMatch + 1]uint8) {
	for lit := range t {
		for length := range t[lit] {
			t[lit][length] = escape
		}
	}

	// Count down, so that the smallest of several tokens for the same lengths remains.
	for token := escape - 1; token >= 0; token-- {
		l := lengths[token]
		t[l&0xff][l>>8] = uint8(token)
	}
	return t
}

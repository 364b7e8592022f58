//go:build !purego

#include "textflag.h"

// All three loops have one invariant: SI (and DX) are at the next block of 64
// bytes, DI at its word, CX > 0 blocks are left, and R8 has of the blocks done the
// last one's bit uppermost: whether its word is not zero. NEGQ sets the carry by
// that, RCRQ moves it in from above. After n blocks the bit of the first one is
// 64-n too high, which the shift after the loop mends.

// func pairAVX2(dst *uint64, a, b *byte, blocks int, b1, f1, b2, f2 byte) (any uint64)
//
// Bit i: a[i]|f1 == b1 and b[i]|f2 == b2.
TEXT ·pairAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ blocks+24(FP), CX
	VPBROADCASTB b1+32(FP), Y0
	VPBROADCASTB f1+33(FP), Y1
	VPBROADCASTB b2+34(FP), Y2
	VPBROADCASTB f2+35(FP), Y3
	XORQ R8, R8
	MOVQ CX, R9

pair:
	// Equal bytes become ff, others 00: where both are, the AND is ff.
	VPOR     (SI), Y1, Y4
	VPOR     32(SI), Y1, Y6
	VPOR     (DX), Y3, Y5
	VPOR     32(DX), Y3, Y7
	VPCMPEQB Y0, Y4, Y4
	VPCMPEQB Y0, Y6, Y6
	VPCMPEQB Y2, Y5, Y5
	VPCMPEQB Y2, Y7, Y7
	VPAND    Y4, Y5, Y4
	VPAND    Y6, Y7, Y6

	// The top bits of 64 bytes are the word of the block.
	VPMOVMSKB Y4, AX
	VPMOVMSKB Y6, BX
	SHLQ $32, BX
	ORQ  BX, AX
	MOVQ AX, (DI)

	// The carry says whether the word is not zero; it comes in at the top of R8.
	NEGQ AX
	RCRQ $1, R8
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $8, DI
	DECQ CX
	JNZ  pair

	// The bit of the first block moves down to bit 0.
	MOVQ $64, CX
	SUBQ R9, CX
	SHRQ CX, R8
	MOVQ R8, any+40(FP)
	VZEROUPPER
	RET

// func setAVX2(dst *uint64, src *byte, blocks int, t *nibbles, high uint64) (any uint64)
//
// Bit i: lo[src[i]&15] & hi[src[i]>>4] != 0, or src[i] >= 0x80 and high. VPSHUFB
// gives 0 for bytes with their top bit set, but the halves have it never.
TEXT ·setAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ t+24(FP), DX
	MOVQ high+32(FP), R10
	VBROADCASTI128 (DX), Y0
	VBROADCASTI128 16(DX), Y1
	MOVL $0x0f0f0f0f, AX
	MOVQ AX, X2
	VPBROADCASTD X2, Y2
	VPXOR Y3, Y3, Y3
	XORQ R8, R8
	MOVQ CX, R9

set:
	// The top bits come first: below they are needed as they were.
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5
	VPMOVMSKB Y4, R11
	VPMOVMSKB Y5, R12

	// The halves of each byte. A shift of bytes there is not: of words there is,
	// and what comes over from the next byte is cut off.
	VPSRLW $4, Y4, Y6
	VPSRLW $4, Y5, Y7
	VPAND  Y2, Y4, Y4
	VPAND  Y2, Y5, Y5
	VPAND  Y2, Y6, Y6
	VPAND  Y2, Y7, Y7

	// Bit k of a table: bucket k has bytes with that half. Both halves must agree
	// on a bucket.
	VPSHUFB Y4, Y0, Y4
	VPSHUFB Y5, Y0, Y5
	VPSHUFB Y6, Y1, Y6
	VPSHUFB Y7, Y1, Y7
	VPAND  Y4, Y6, Y4
	VPAND  Y5, Y7, Y5

	// Where no bucket is left there is ff, so that the mask is the opposite.
	VPCMPEQB Y3, Y4, Y4
	VPCMPEQB Y3, Y5, Y5
	VPMOVMSKB Y4, AX
	VPMOVMSKB Y5, BX

	// A byte is in the set if its two halves share a bucket, or by its top bit.
	SHLQ $32, BX
	ORQ  BX, AX
	NOTQ AX
	SHLQ $32, R12
	ORQ  R12, R11
	ANDQ R10, R11
	ORQ  R11, AX
	MOVQ AX, (DI)
	NEGQ AX
	RCRQ $1, R8
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  set

	// As in pair.
	MOVQ $64, CX
	SUBQ R9, CX
	SHRQ CX, R8
	MOVQ R8, any+40(FP)
	VZEROUPPER
	RET

// One position of the three: the buckets of 32 bytes at off(SI), through the
// tables lo and hi, are intersected into acc.
#define POSITION(off, lo, hi, acc) \
	VMOVDQU off(SI), Y10   \
	VPSRLW  $4, Y10, Y11   \
	VPAND   Y8, Y10, Y10   \
	VPAND   Y8, Y11, Y11   \
	VPSHUFB Y10, lo, Y10   \
	VPSHUFB Y11, hi, Y11   \
	VPAND   Y10, acc, acc  \
	VPAND   Y11, acc, acc

// func tripleAVX2(dst *uint64, src *byte, blocks int, t *[3]nibbles) (any uint64)
//
// Bit i: some bucket is that of src[i] in t[0], of src[i+1] in t[1] and of
// src[i+2] in t[2]. Two bytes after the last block are read.
TEXT ·tripleAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ t+24(FP), DX
	VBROADCASTI128 (DX), Y0
	VBROADCASTI128 16(DX), Y1
	VBROADCASTI128 32(DX), Y2
	VBROADCASTI128 48(DX), Y3
	VBROADCASTI128 64(DX), Y4
	VBROADCASTI128 80(DX), Y5
	MOVL $0x0f0f0f0f, AX
	MOVQ AX, X8
	VPBROADCASTD X8, Y8
	VPXOR Y9, Y9, Y9
	XORQ R8, R8
	MOVQ CX, R9

triple:
	// All buckets are possible until a position takes some away.
	VPCMPEQB Y12, Y12, Y12
	VPCMPEQB Y13, Y13, Y13
	POSITION(0, Y0, Y1, Y12)
	POSITION(1, Y2, Y3, Y12)
	POSITION(2, Y4, Y5, Y12)
	POSITION(32, Y0, Y1, Y13)
	POSITION(33, Y2, Y3, Y13)
	POSITION(34, Y4, Y5, Y13)

	// As in set: ff where no bucket is left.
	VPCMPEQB Y9, Y12, Y12
	VPCMPEQB Y9, Y13, Y13
	VPMOVMSKB Y12, AX
	VPMOVMSKB Y13, BX
	SHLQ $32, BX
	ORQ  BX, AX
	NOTQ AX
	MOVQ AX, (DI)

	// The carry says whether the word is not zero.
	NEGQ AX
	RCRQ $1, R8
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  triple

	// As in pair.
	MOVQ $64, CX
	SUBQ R9, CX
	SHRQ CX, R8
	MOVQ R8, any+32(FP)
	VZEROUPPER
	RET

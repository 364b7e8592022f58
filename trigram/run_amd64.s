//go:build !purego

#include "textflag.h"

#define BROADCAST(value, x, y) \
	MOVL $value, AX; \
	MOVQ AX, x;      \
	VPBROADCASTD x, y

// HALF classifies 32 bytes at offset from into the masks at offset to.
//
// There is no unsigned comparison of bytes, but min(y, n) = y exactly if y <= n. So
// each class subtracts its first byte and compares the result with the minimum of it
// and how many follow. Of 'c', which is 63, in hexadecimal:
//
//	digit     63-30 = 33    min(33, 09) = 09    no
//	letter    63-61 = 02    min(02, 19) = 02    yes
//	a to f    63-61 = 02    min(02, 05) = 02    yes
#define HALF(from, to) \
	VMOVDQU   from(SI), Y0;  \
	VPSUBB    Y15, Y0, Y1;   \ // digits: x-'0' <= 9
	VPMINUB   Y14, Y1, Y2;   \
	VPCMPEQB  Y1, Y2, Y1;    \
	VPSUBB    Y13, Y0, Y2;   \ // capitals: x-'A' <= 25
	VPMINUB   Y12, Y2, Y3;   \
	VPCMPEQB  Y2, Y3, Y2;    \
	VPOR      Y11, Y0, Y3;   \ // letters: (x|0x20)-'a' <= 25
	VPSUBB    Y10, Y3, Y3;   \
	VPMINUB   Y12, Y3, Y4;   \
	VPCMPEQB  Y3, Y4, Y4;    \
	VPMINUB   Y9, Y3, Y5;    \ // a to f: the same <= 5
	VPCMPEQB  Y3, Y5, Y5;    \
	VPOR      Y1, Y5, Y5;    \
	VPCMPEQB  Y8, Y0, Y6;    \ // word: letter, digit or '_'
	VPOR      Y4, Y6, Y6;    \
	VPOR      Y1, Y6, Y6;    \
	VPMOVMSKB Y1, AX;        \
	VPMOVMSKB Y2, BX;        \
	VPMOVMSKB Y5, DX;        \
	VPMOVMSKB Y6, R8;        \
	MOVL      AX, to(DI);    \
	MOVL      BX, 8+to(DI);  \
	MOVL      DX, 16+to(DI); \
	MOVL      R8, 24+to(DI)

// func classMasks(text *byte, blocks int, masks *uint64)
//
// Invariant of loop: SI is at the next 64 bytes, DI at their four masks, and CX
// blocks are left. Bit i of mask c tells of byte i of the block whether it is in
// run class c: digits, capitals, hex digits, words.
TEXT ·classMasks(SB), NOSPLIT, $0-24
	MOVQ text+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ masks+16(FP), DI

	// Y15 to Y8: '0' and 9, 'A' and 25, the bit of lower case, 'a' and 5, '_'.
	BROADCAST(0x30303030, X15, Y15)
	BROADCAST(0x09090909, X14, Y14)
	BROADCAST(0x41414141, X13, Y13)
	BROADCAST(0x19191919, X12, Y12)
	BROADCAST(0x20202020, X11, Y11)
	BROADCAST(0x61616161, X10, Y10)
	BROADCAST(0x05050505, X9, Y9)
	BROADCAST(0x5f5f5f5f, X8, Y8)

loop:
	TESTQ CX, CX
	JLE   done
	// Each half of the block gives 32 bits of each mask.
	HALF(0, 0)
	HALF(32, 4)
	ADDQ  $64, SI
	ADDQ  $32, DI
	DECQ  CX
	JMP   loop

done:
	VZEROUPPER
	RET

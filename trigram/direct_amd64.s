//go:build !purego

#include "textflag.h"

#define CONST(name, value) \
	DATA name<>+0(SB)/8, $value;  \
	DATA name<>+8(SB)/8, $value;  \
	DATA name<>+16(SB)/8, $value; \
	DATA name<>+24(SB)/8, $value; \
	GLOBL name<>(SB), RODATA|NOPTR, $32

CONST(upperA, 0x4141414141414141)
CONST(letters, 0x1919191919191919)
CONST(space, 0x2020202020202020)
CONST(printable, 0x5e5e5e5e5e5e5e5e)
CONST(bracket, 0x3b3b3b3b3b3b3b3b)
CONST(upperGap, 0x1a1a1a1a1a1a1a1a)
CONST(three, 0x0303030303030303)
CONST(tab, 0x0909090909090909)
CONST(feed, 0x0a0a0a0a0a0a0a0a)
CONST(carriage, 0x0d0d0d0d0d0d0d0d)
CONST(one, 0x0101010101010101)
CONST(two, 0x0202020202020202)
CONST(escaped, 0x8080808080808080)
CONST(times72, 0x0048004800480048)
CONST(times5184, 0x0001144000011440)

// func classify(classes, text *byte, blocks int) (escapes uint32)
//
// Classes are in the order of the folded bytes: tab, newline and carriage
// return are 0 to 2, space to '@' come from 3 on, '[' to '~' behind them. With
// x folded,
//
//	class = x - ' ' + 3                  for ' ' <= x <= '@'
//	class = x - ' ' + 3 - 26             for '[' <= x <= '~': no capitals before it
//	class = 0, 1, 2                      for tab, newline, carriage return
//	class = 128                          for all others: escape
//
// Invariant of block: SI and DI are at the next 32 bytes, CX blocks are left,
// and Y8 is the or of the escapes of those before.
TEXT ·classify(SB), NOSPLIT, $0-28
	MOVQ    classes+0(FP), DI
	MOVQ    text+8(FP), SI
	MOVQ    blocks+16(FP), CX
	VMOVDQU upperA<>(SB), Y15
	VMOVDQU letters<>(SB), Y14
	VMOVDQU space<>(SB), Y13
	VMOVDQU printable<>(SB), Y12
	VMOVDQU bracket<>(SB), Y11
	VMOVDQU upperGap<>(SB), Y10
	VMOVDQU three<>(SB), Y9
	VPXOR   Y8, Y8, Y8

block:
	TESTQ CX, CX
	JLE   classified
	VMOVDQU (SI), Y0
	VPSUBB  Y15, Y0, Y1       // capitals: x-'A' <= 25
	VPMINUB Y14, Y1, Y2
	VPCMPEQB Y1, Y2, Y1
	VPAND   Y13, Y1, Y1       // 0x20 for each capital
	VPOR    Y1, Y0, Y1        // folded
	VPSUBB  Y13, Y1, Y1
	VPMINUB Y12, Y1, Y2
	VPCMPEQB Y1, Y2, Y2       // printable: x-' ' <= '~'-' '
	VPMAXUB Y11, Y1, Y3
	VPCMPEQB Y1, Y3, Y3       // after the capitals
	VPAND   Y10, Y3, Y3
	VPADDB  Y9, Y1, Y1
	VPSUBB  Y3, Y1, Y1
	VPAND   Y2, Y1, Y1

	// The three control characters of text, which have the classes 0 to 2.
	VPCMPEQB tab<>(SB), Y0, Y3
	VPCMPEQB feed<>(SB), Y0, Y4
	VPCMPEQB carriage<>(SB), Y0, Y5
	VPOR    Y3, Y2, Y2
	VPOR    Y4, Y2, Y2
	VPOR    Y5, Y2, Y2        // has a class
	VPAND   one<>(SB), Y4, Y4
	VPAND   two<>(SB), Y5, Y5
	VPOR    Y4, Y1, Y1
	VPOR    Y5, Y1, Y1

	// Whatever has no class is an escape.
	VPANDN  escaped<>(SB), Y2, Y2
	VPOR    Y2, Y1, Y1
	VPOR    Y2, Y8, Y8
	VMOVDQU Y1, (DI)
	ADDQ  $32, SI
	ADDQ  $32, DI
	DECQ  CX
	JMP   block

classified:
	VPMOVMSKB Y8, AX
	MOVL AX, escapes+24(FP)
	VZEROUPPER
	RET

// KEEP stores the number at offset at of the frame and advances over it when
// its byte is below the epoch.
#define KEEP(at) \
	MOVL at(SP), AX;        \
	MOVL AX, (DI)(R9*4);    \
	CMPB (R8)(AX*1), DX;    \
	MOVB DX, (R8)(AX*1);    \
	ADCQ $0, R9

// func distinctNumbers(ids *uint32, classes *byte, n int, seen *uint8, epoch uint8) (count int)
//
// Bytes of seen are never above the epoch, so that the carry of comparing
// tells what is new. Sixteen numbers are made at once; the last sixteen
// overlap those before, whose numbers are no longer new.
//
// Invariant of numbers: SI is at the classes of the next trigram, CX > 0 of them
// are left, and 16 can be made from SI on; ids[:R9] are the distinct numbers so
// far, each with seen = epoch; R9 <= trigrams done <= n, so that a number that is
// stored and not kept lies within ids.
TEXT ·distinctNumbers(SB), NOSPLIT, $64-48
	MOVQ    ids+0(FP), DI
	MOVQ    classes+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVQ    seen+24(FP), R8
	MOVBLZX epoch+32(FP), DX
	XORL    R9, R9
	VMOVDQU times72<>(SB), Y15
	VMOVDQU times5184<>(SB), Y14

numbers:
	// 16 trigrams at a time: first, second and third classes as words.
	VPMOVZXBW (SI), Y0
	VPMOVZXBW 1(SI), Y1
	VPMOVZXBW 2(SI), Y2
	VPMULLW Y15, Y1, Y1
	VPADDW  Y2, Y1, Y1
	VPUNPCKLWD Y1, Y0, Y3
	VPUNPCKHWD Y1, Y0, Y4
	VPMADDWD Y14, Y3, Y3      // first*5184 + (second*72 + third)
	VPMADDWD Y14, Y4, Y4
	VMOVDQU Y3, 0(SP)
	VMOVDQU Y4, 32(SP)
	KEEP(0)
	KEEP(4)
	KEEP(8)
	KEEP(12)
	KEEP(32)
	KEEP(36)
	KEEP(40)
	KEEP(44)
	KEEP(16)
	KEEP(20)
	KEEP(24)
	KEEP(28)
	KEEP(48)
	KEEP(52)
	KEEP(56)
	KEEP(60)

	// Fewer than 16 left: go back to where 16 end with the last.
	ADDQ $16, SI
	SUBQ $16, CX
	CMPQ CX, $16
	JGE  numbers
	TESTQ CX, CX
	JEQ  kept
	LEAQ -16(SI)(CX*1), SI
	MOVQ $16, CX
	JMP  numbers

kept:
	MOVQ R9, count+40(FP)
	VZEROUPPER
	RET

// func dealOut(ids *uint32, n int, hot *uint16, word *uint64, bit uint64, log *uint32) (logged int)
//
// Comparing a row with 1 carries when it is 0, which is added to the count.
//
// Invariant of deal: SI is past the last trigram and -CX > 0 are left;
// log[:R9] are those of row 0 so far, R9 <= n + CX.
TEXT ·dealOut(SB), NOSPLIT, $0-56
	MOVQ ids+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ hot+16(FP), R8
	MOVQ word+24(FP), R10
	MOVQ bit+32(FP), DX
	MOVQ log+40(FP), DI
	XORL R9, R9
	LEAQ (SI)(CX*4), SI
	NEGQ CX
	JZ   dealt

deal:
	MOVL    (SI)(CX*4), AX
	MOVWLZX (R8)(AX*2), BX
	MOVL    AX, (DI)(R9*4)
	ORQ     DX, (R10)(BX*8)
	CMPL    BX, $1
	ADCQ    $0, R9
	INCQ    CX
	JNZ     deal

dealt:
	MOVQ R9, logged+48(FP)
	RET

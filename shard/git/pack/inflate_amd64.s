//go:build !purego

#include "textflag.h"

// Distances below 16 repeat a pattern: row d gives its bytes in 16 places.
DATA repeat<>+0x00(SB)/8, $0
DATA repeat<>+0x08(SB)/8, $0
DATA repeat<>+0x10(SB)/8, $0
DATA repeat<>+0x18(SB)/8, $0
DATA repeat<>+0x20(SB)/8, $0x0100010001000100
DATA repeat<>+0x28(SB)/8, $0x0100010001000100
DATA repeat<>+0x30(SB)/8, $0x0100020100020100
DATA repeat<>+0x38(SB)/8, $0x0002010002010002
DATA repeat<>+0x40(SB)/8, $0x0302010003020100
DATA repeat<>+0x48(SB)/8, $0x0302010003020100
DATA repeat<>+0x50(SB)/8, $0x0201000403020100
DATA repeat<>+0x58(SB)/8, $0x0004030201000403
DATA repeat<>+0x60(SB)/8, $0x0100050403020100
DATA repeat<>+0x68(SB)/8, $0x0302010005040302
DATA repeat<>+0x70(SB)/8, $0x0006050403020100
DATA repeat<>+0x78(SB)/8, $0x0100060504030201
DATA repeat<>+0x80(SB)/8, $0x0706050403020100
DATA repeat<>+0x88(SB)/8, $0x0706050403020100
DATA repeat<>+0x90(SB)/8, $0x0706050403020100
DATA repeat<>+0x98(SB)/8, $0x0605040302010008
DATA repeat<>+0xa0(SB)/8, $0x0706050403020100
DATA repeat<>+0xa8(SB)/8, $0x0504030201000908
DATA repeat<>+0xb0(SB)/8, $0x0706050403020100
DATA repeat<>+0xb8(SB)/8, $0x04030201000a0908
DATA repeat<>+0xc0(SB)/8, $0x0706050403020100
DATA repeat<>+0xc8(SB)/8, $0x030201000b0a0908
DATA repeat<>+0xd0(SB)/8, $0x0706050403020100
DATA repeat<>+0xd8(SB)/8, $0x0201000c0b0a0908
DATA repeat<>+0xe0(SB)/8, $0x0706050403020100
DATA repeat<>+0xe8(SB)/8, $0x01000d0c0b0a0908
DATA repeat<>+0xf0(SB)/8, $0x0706050403020100
DATA repeat<>+0xf8(SB)/8, $0x000e0d0c0b0a0908
GLOBL repeat<>(SB), RODATA|NOPTR, $256

// By distance: the most bytes up to 16 that are whole patterns.
DATA whole<>+0(SB)/8, $0x0e0c0f100f101000
DATA whole<>+8(SB)/8, $0x0f0e0d0c0b0a0910
GLOBL whole<>(SB), RODATA|NOPTR, $16

// REFILL makes sure of 56 bits. Of CX only the low byte counts.
//
// BX holds CX bits, and (63-CX)/8 whole bytes fit above them: that is (^CX>>3)&7.
// SI goes on by as many, and 56 + CX%8 bits are there afterwards, which is CX|56.
// The bytes are read and put in all at once; what does not fit is read again.
#define REFILL \
	MOVQ  (SI), R13;      \
	SHLXQ CX, R13, R13;   \
	ORQ   R13, BX;        \
	MOVL  CX, R13;        \
	NOTL  R13;            \
	SHRL  $3, R13;        \
	ANDL  $7, R13;        \
	ADDQ  R13, SI;        \
	ORL   $56, CX

// USE takes the bits of an entry. Their number is in its low byte, of which shifts
// look at 6 bits: nothing has to be cut out.
#define USE(entry) \
	SHRXQ entry, BX, BX; \
	SUBL  entry, CX

// CODE looks at the next code of literals and lengths.
#define CODE \
	MOVL BX, AX;          \
	ANDL $1023, AX;       \
	MOVL (R10)(AX*4), AX

// LITERAL writes the literal of the entry in AX.
#define LITERAL \
	MOVL AX, R13;    \
	SHRL $16, R13;   \
	MOVB R13, (DI);  \
	INCQ DI;         \
	USE(AX)

// NUMBER replaces an entry, whose bits it takes, by its base and extra bits. The low
// byte counts the bits of the code and the extra ones together, the next byte those
// of the code alone; the base stands above.
#define NUMBER(entry) \
	BZHIQ entry, BX, R13;   \
	MOVL  entry, R14;       \
	SHRL  $8, R14;          \
	SHRXQ R14, R13, R13;    \
	USE(entry);             \
	SHRL  $16, entry;       \
	ADDL  R13, entry

// FURTHER goes from an entry of a first table to the one of the further table.
#define FURTHER(entry, table) \
	USE(entry);                \
	MOVL  entry, R13;          \
	SHRL  $8, R13;             \
	ANDL  $15, R13;            \
	BZHIQ R13, BX, R13;        \
	SHRL  $16, entry;          \
	ADDL  R13, entry;          \
	MOVL  (table)(entry*4), entry

// func inflateWide(lit, dist *uint32, src *byte, at, lastIn int, dst *byte, out, lastOut int, buf uint64, n uint) (at2, out2 int, buf2 uint64, n2 uint, state int)
//
// SI  input   R8 the last place from where it can be read at once
// DI  output  R9 the last place to where it can be written at once
// R12 dst     R10 codes of literals and lengths   R11 codes of distances
// BX  bits    CX how many
// AX  entry, then length   DX entry, then distance
TEXT ·inflateWide(SB), NOSPLIT, $0-120
	MOVQ lit+0(FP), R10
	MOVQ dist+8(FP), R11
	MOVQ src+16(FP), AX
	MOVQ at+24(FP), SI
	MOVQ lastIn+32(FP), R8
	MOVQ dst+40(FP), R12
	MOVQ out+48(FP), DI
	MOVQ lastOut+56(FP), R9
	MOVQ buf+64(FP), BX
	MOVQ n+72(FP), CX
	ADDQ AX, SI
	ADDQ AX, R8
	ADDQ R12, DI
	ADDQ R12, R9

	// Each step begins here. As long as there is room for it on both sides
	//
	//	SI <= R8: 32 bytes of input can be read from SI on
	//	DI <= R9: 293 bytes of output can be written from DI on
	//
	// and always BX has CL bits that were not used, CL < 64, and the byte at SI
	// comes next. Above its lowest byte CX is of no meaning.
again:
	CMPQ SI, R8
	JHI  room
	CMPQ DI, R9
	JHI  room

	// Of 10 bits the table has an entry each; longer codes go through a further one.
	REFILL
	CODE

	// AX is the entry of the next code, and there are 56 bits. A step may begin
	// here, too, which saves a refill after a match: SI <= R8 held before the
	// refill, which took 7 bytes at most, and DI <= R9 holds. Three literals
	// take at most 30 bits, and the length that may follow two of them 20.
next:
	TESTL AX, AX
	JPL   length
	LITERAL
	CODE
	TESTL AX, AX
	JPL   length
	LITERAL
	CODE
	TESTL AX, AX
	JPL   length
	LITERAL
	JMP   again

length:
	// What is no literal and no length of the first table is rare.
	TESTL $0x8000, AX
	JNE   rare

	// AX is a length. A distance takes at most 28 bits: 15 and 13.
common:
	NUMBER(AX)

	// Of 8 bits the table of distances has an entry each.
	MOVBLZX BX, DX
	MOVL (R11)(DX*4), DX
	CMPB CX, $28
	JCC  enough
	REFILL

enough:
	TESTL $0x8000, DX
	JNE   far

distance:
	NUMBER(DX)
	MOVQ DI, R15             // to
	MOVQ DI, R13
	SUBQ R12, R13

	// Nothing lies before the beginning of the output.
	CMPQ DX, R13
	JHI  damaged
	LEAQ (DI)(AX*1), DI      // end
	MOVL AX, R14             // length

	// The next code is looked at before the match is copied: its load runs beside.
	CMPQ SI, R8
	JHI  last
	CMPQ DI, R9
	JHI  last
	REFILL
	CODE

	// From 16 bytes before, two moves of 16 do not overlap what they make.
	CMPL DX, $16
	JCS  close
	NEGQ DX
	MOVOU (R15)(DX*1), X0    // from
	MOVOU X0, (R15)
	MOVOU 16(R15)(DX*1), X0
	MOVOU X0, 16(R15)
	CMPL R14, $32
	JLS  next

	// A match from 16 bytes before or more. DI is past it already; R14 bytes
	// of it are not made before R15+32, and up to 31 after it may be written.
more:
	ADDQ $32, R15
	MOVOU (R15)(DX*1), X0
	MOVOU X0, (R15)
	MOVOU 16(R15)(DX*1), X0
	MOVOU X0, 16(R15)
	SUBL $32, R14
	CMPL R14, $32
	JHI  more
	JMP  next

	// A match from less than 16 bytes before repeats a pattern of DX bytes. X0
	// has it 16 bytes wide; each round writes those and goes on by the R13 of
	// them that are whole patterns. Up to 15 bytes after DI are written.
close:
	MOVQ DX, R13
	SHLQ $4, R13
	LEAQ repeat<>(SB), R14
	MOVOU (R14)(R13*1), X1
	LEAQ whole<>(SB), R14
	MOVBLZX (R14)(DX*1), R13
	MOVQ R15, R14
	SUBQ DX, R14
	MOVOU (R14), X0
	PSHUFB X1, X0

pattern:
	MOVOU X0, (R15)
	ADDQ R13, R15
	CMPQ R15, DI
	JCS  pattern
	JMP  next

	// The last match for which there is room: to R15, length R14.
last:
	MOVQ R15, R13
	SUBQ DX, R13

	// Byte by byte, R14 > 0 of them: exactly DI is reached.
bytes:
	MOVB (R13), AX
	MOVB AX, (R15)
	INCQ R13
	INCQ R15
	DECL R14
	JNE  bytes
	JMP  room

rare:
	// A code longer than 10 bits: the rest of it chooses in a further table.
	TESTL $0x2000, AX
	JEQ   special
	FURTHER(AX, R10)
	TESTL AX, AX
	JPL   longer
	LITERAL
	JMP   again

longer:
	TESTL $0x8000, AX
	JEQ   common

special:
	// The end of the block, or a code that is none.
	TESTL $0x4000, AX
	JEQ   damaged
	USE(AX)
	MOVQ $1, state+112(FP)
	JMP  leave

far:
	// A code of a distance longer than 8 bits, or one that is none.
	TESTL $0x2000, DX
	JEQ   damaged
	FURTHER(DX, R11)
	TESTL $0x8000, DX
	JEQ   distance

damaged:
	MOVQ $2, state+112(FP)
	JMP  leave

room:
	MOVQ $0, state+112(FP)

leave:
	SUBQ src+16(FP), SI
	SUBQ R12, DI
	MOVBLZX CX, CX
	MOVQ SI, at2+80(FP)
	MOVQ DI, out2+88(FP)
	MOVQ BX, buf2+96(FP)
	MOVQ CX, n2+104(FP)
	RET

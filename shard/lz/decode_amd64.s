//go:build !purego

#include "textflag.h"

// func decodeShort(dst *byte, o, lastOut int, block *byte, r, end, l, lastLit int, dict *byte, dictLen, span int, lengths *[256]uint16) (r2, l2, o2 int)
//
// SI  record       0(SP) after the last   R11 lengths
// R8  literals     R10 the last place from where all of them can be read at once
// DI  output       R9  the last place to where all can be written at once
// R12 dst          R13 from a place before dst to the same one in the dictionary
// R14 dictionary   R15 the last place in it from where all can be read at once
// AX  offset, BX literals, CX length of the match, DX where the match is
//
// Invariant of loop, with records, literals and output as Decode has them (r, l
// and o):
//
//	SI = block+r, R8 = block+l, DI = dst+o      everything before them is done
//	at the label  done: they tell of the first sequence that is not done
//
// A common sequence has at most 15 literals and a match of at most 32 bytes: it
// reads 16 bytes of literals and 32 of the match and writes 16+32 = Slack of
// output, at most, so it may be done while
//
//	SI < last record, R8 <= R10, DI <= R9 = min(dst+len-1, dst+cap-Slack)
//
// It is checked after its literals were written whether the match lies before dst
// in the dictionary, and within what may be read of that (BX <= R15): if not,
// undo takes the literals back, which another way writes again. A sequence that
// is told in full (long) is done here only if its lengths have one byte each and
// its offset is 16 or more; the literals and the match may then be copied 16
// bytes at once (literals, match: AX bytes are copied, AX < length).
TEXT ·decodeShort(SB), NOSPLIT, $8-120
	MOVQ dst+0(FP), R12
	MOVQ o+8(FP), DI
	MOVQ lastOut+16(FP), R9
	MOVQ block+24(FP), BX
	MOVQ r+32(FP), SI
	MOVQ end+40(FP), DX
	MOVQ l+48(FP), R8
	MOVQ lastLit+56(FP), R10
	MOVQ dict+64(FP), R14
	MOVQ dictLen+72(FP), R13
	MOVQ span+80(FP), R15
	MOVQ lengths+88(FP), R11
	ADDQ R12, DI
	ADDQ R12, R9
	ADDQ BX, SI
	ADDQ BX, DX
	MOVQ DX, 0(SP)
	ADDQ BX, R8
	ADDQ BX, R10
	ADDQ R14, R13
	SUBQ R12, R13

loop:
	CMPQ SI, 0(SP)
	JCC  done
	CMPQ DI, R9
	JHI  done
	CMPQ R8, R10
	JHI  done

	// The record: its token, then its offset above it.
	MOVL (SI), AX
	CMPB AX, $0xff
	JEQ  long

	// The literals, 16 bytes whatever their number; BX is that, CX the length.
	MOVOU (R8), X0
	MOVOU X0, (DI)
	MOVBLZX AX, BX
	MOVWLZX (R11)(BX*2), CX
	MOVBLZX CX, BX
	SHRL $8, CX
	SHRL $8, AX
	MOVWLZX AX, AX
	ADDQ BX, R8
	ADDQ BX, DI

	// In the block, or else in the dictionary: no branch for it. BX is how
	// far into the dictionary, 0 in the block.
	MOVQ DI, DX
	SUBQ AX, DX
	LEAQ (DX)(R13*1), BX
	CMPQ DX, R12
	CMOVQCS BX, DX
	CMOVQCC R14, BX
	SUBQ R14, BX
	CMPQ BX, R15
	JHI  undo

	// The match, 32 bytes whatever its length.
	MOVOU (DX), X0
	MOVOU X0, (DI)
	MOVOU 16(DX), X1
	MOVOU X1, 16(DI)
	ADDQ CX, DI
	ADDQ $3, SI
	JMP  loop

long:
	// Both lengths from the literals, each of one byte below 255.
	MOVBLZX (R8), BX
	MOVBLZX 1(R8), CX
	CMPL BX, $255
	JEQ  done
	CMPL CX, $255
	JEQ  done
	SHRL $8, AX
	MOVWLZX AX, AX
	CMPL AX, $16
	JCS  done

	// Room to read the literals, and to write them and the match.
	LEAQ (R8)(BX*1), DX
	CMPQ DX, R10
	JHI  done
	LEAQ (DI)(BX*1), DX
	ADDQ CX, DX
	CMPQ DX, R9
	JHI  done

	// DX is where the match is: in the block, or in the dictionary if that holds it.
	SUBQ CX, DX
	SUBQ AX, DX
	CMPQ DX, R12
	JCC  near
	ADDQ R13, DX
	MOVQ DX, AX
	SUBQ R14, AX
	JCS  done
	ADDQ CX, AX
	CMPQ AX, R15
	JHI  done

near:
	ADDQ $2, R8
	XORL AX, AX

literals:
	MOVOU (R8)(AX*1), X0
	MOVOU X0, (DI)(AX*1)
	ADDQ $16, AX
	CMPQ AX, BX
	JCS  literals
	ADDQ BX, R8
	ADDQ BX, DI
	ADDQ $4, CX
	XORL AX, AX

match:
	MOVOU (DX)(AX*1), X0
	MOVOU X0, (DI)(AX*1)
	ADDQ $16, AX
	CMPQ AX, CX
	JCS  match
	ADDQ CX, DI
	ADDQ $3, SI
	JMP  loop

undo:
	MOVBLZX (SI), BX
	MOVBLZX (R11)(BX*2), BX
	SUBQ BX, R8
	SUBQ BX, DI

done:
	MOVQ block+24(FP), BX
	SUBQ BX, SI
	SUBQ BX, R8
	SUBQ R12, DI
	MOVQ SI, r2+96(FP)
	MOVQ R8, l2+104(FP)
	MOVQ DI, o2+112(FP)
	RET

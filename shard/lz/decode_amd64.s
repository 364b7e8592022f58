#include "textflag.h"

// func decodeShort(dst *byte, o, last int, block *byte, i, lastIn int, dict *byte, dictLen, lastDict int) (i2, o2 int)
//
// AX  length of the match less 4   BX  literals, then o behind them
// CX  offset                       DX  i + literals
// DI  dst      R8  o      R9  last
// SI  block    R10 i      R11 lastIn
// R12 dict     R13 dictLen
// R15 where the match is           R14 that in the dictionary, then its limit
TEXT ·decodeShort(SB), NOSPLIT, $0-88
	MOVQ dst+0(FP), DI
	MOVQ o+8(FP), R8
	MOVQ last+16(FP), R9
	MOVQ block+24(FP), SI
	MOVQ i+32(FP), R10
	MOVQ lastIn+40(FP), R11
	MOVQ dict+48(FP), R12
	MOVQ dictLen+56(FP), R13

loop:
	CMPQ R8, R9
	JGT  done
	CMPQ R10, R11
	JGT  done
	MOVBLZX (SI)(R10*1), AX
	MOVL AX, BX
	SHRL $4, BX
	ANDL $15, AX
	CMPL BX, $15
	JEQ  done
	CMPL AX, $15
	JEQ  done
	MOVOU 1(SI)(R10*1), X0
	MOVOU X0, (DI)(R8*1)
	LEAQ (R10)(BX*1), DX
	MOVWLZX 1(SI)(DX*1), CX
	CMPL CX, $16
	JLT  done
	ADDQ R8, BX

	// In the block, or else in the dictionary: no branch for it.
	MOVQ BX, R15
	SUBQ CX, R15
	LEAQ (R15)(R13*1), R14
	MOVQ DI, CX
	TESTQ R15, R15
	CMOVQLT R12, CX
	CMOVQLT R14, R15
	MOVQ R9, R14
	CMOVQLT lastDict+64(FP), R14
	ADDQ R15, CX

	// Where it would lead outside, R15 is negative: above every limit.
	CMPQ R15, R14
	JHI  done
	MOVOU (CX), X1
	MOVOU X1, (DI)(BX*1)
	MOVOU 16(CX), X2
	MOVOU X2, 16(DI)(BX*1)
	LEAQ 4(BX)(AX*1), R8
	LEAQ 3(DX), R10
	JMP  loop

done:
	MOVQ R10, i2+72(FP)
	MOVQ R8, o2+80(FP)
	RET

/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of LuaJIT 2.1, from beta3 of 2017 to 2025 the same (lj_bc.h; metamethods: lj_debug.c). */
#include "luajit_bytecode.h"

#include <stddef.h>

/* Operand A is a destination (D), the first of many (B), or something else (O). */
#define D(name, metamethod) {#name, metamethod, OPERAND_DST},
#define B(name, metamethod) {#name, metamethod, OPERAND_BASE},
#define O(name, metamethod) {#name, metamethod, OPERAND_OTHER},
/* clang-format off */
const struct luajit_op luajit_ops[LUAJIT_OPS] = {
	O(ISLT, "__lt") O(ISGE, "__lt") O(ISLE, "__le") O(ISGT, "__le") O(ISEQV, "__eq") O(ISNEV, "__eq")
	O(ISEQS, "__eq") O(ISNES, "__eq") O(ISEQN, "__eq") O(ISNEN, "__eq") O(ISEQP, "__eq") O(ISNEP, "__eq")
	D(ISTC, NULL) D(ISFC, NULL) O(IST, NULL) O(ISF, NULL) O(ISTYPE, NULL) O(ISNUM, NULL) D(MOV, NULL)
	D(NOT, NULL) D(UNM, "__unm") D(LEN, "__len") D(ADDVN, "__add") D(SUBVN, "__sub") D(MULVN, "__mul")
	D(DIVVN, "__div") D(MODVN, "__mod") D(ADDNV, "__add") D(SUBNV, "__sub") D(MULNV, "__mul")
	D(DIVNV, "__div") D(MODNV, "__mod") D(ADDVV, "__add") D(SUBVV, "__sub") D(MULVV, "__mul")
	D(DIVVV, "__div") D(MODVV, "__mod") D(POW, "__pow") D(CAT, "__concat") D(KSTR, NULL) D(KCDATA, NULL)
	D(KSHORT, NULL) D(KNUM, NULL) D(KPRI, NULL) B(KNIL, NULL) D(UGET, NULL) O(USETV, NULL) O(USETS, NULL)
	O(USETN, NULL) O(USETP, NULL) O(UCLO, NULL) D(FNEW, "__gc") D(TNEW, "__gc") D(TDUP, "__gc")
	D(GGET, "__index") O(GSET, "__newindex") D(TGETV, "__index") D(TGETS, "__index") D(TGETB, "__index")
	D(TGETR, "__index") O(TSETV, "__newindex") O(TSETS, "__newindex") O(TSETB, "__newindex")
	B(TSETM, "__newindex") O(TSETR, "__newindex") B(CALLM, "call") B(CALL, "call") B(CALLMT, "call")
	B(CALLT, "call") B(ITERC, "call") B(ITERN, "call") B(VARG, NULL) B(ISNEXT, NULL) B(RETM, NULL)
	O(RET, NULL) O(RET0, NULL) O(RET1, NULL) B(FORI, NULL) B(JFORI, NULL) B(FORL, NULL) B(IFORL, NULL)
	B(JFORL, NULL) B(ITERL, NULL) B(IITERL, NULL) B(JITERL, NULL) O(LOOP, NULL) O(ILOOP, NULL)
	O(JLOOP, NULL) O(JMP, NULL) O(FUNCF, NULL) O(IFUNCF, NULL) O(JFUNCF, NULL) O(FUNCV, NULL)
	O(IFUNCV, NULL) O(JFUNCV, NULL) O(FUNCC, NULL) O(FUNCCW, NULL)
};
/* clang-format on */
#undef D
#undef B
#undef O

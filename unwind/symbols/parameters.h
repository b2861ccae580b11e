/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a function takes and returns, by its debug information: names and kinds, and where parameters are at its entry,
 * results at its return.
 */
#ifndef YRT_PARAMETERS_H
#define YRT_PARAMETERS_H

#include <stdbool.h>
#include <types.h>

#include "binary/image.h"

#define PARAMETERS_MAX 16
#define PARAMETER_REGS 2
#define RESULTS_MAX    4

enum parameter_kind {
	PARAMETER_OTHER, /* a structure, a floating-point number: no value is shown */
	PARAMETER_SIGNED,
	PARAMETER_UNSIGNED,
	PARAMETER_BOOL,
	PARAMETER_CHAR,
	PARAMETER_POINTER,
	PARAMETER_TO_TEXT,  /* points to a pointer to bytes, followed by how many */
	PARAMETER_TO_SIZED, /* the same, in the other order */
	PARAMETER_STRING,   /* points to bytes, which may be text up to a 0 */
	PARAMETER_TEXT,     /* a pointer to bytes, and how many these are */
	PARAMETER_SIZED,    /* the same, in the other order */
	PARAMETER_BOXED,    /* a pointer to a type or NULL, and one to the value: an interface of Go */
};

struct parameter {
	char name[48]; /* "": it has none */
	enum parameter_kind kind;
	u8 size;                /* of a number, in bytes */
	u8 nregs;               /* 0: it is in no general register */
	u8 reg[PARAMETER_REGS]; /* by DWARF's numbers, at the function's first instruction */
	u16 stack;              /* so far from the stack pointer there; 0: it is not on the stack */
};

struct parameters {
	u32 n;
	bool more; /* than PARAMETERS_MAX */
	struct parameter of[PARAMETERS_MAX];
	u32 nresults; /* 0: none, or it is not known where they are */
	bool more_results;
	struct parameter result[RESULTS_MAX]; /* registers as it returns */
};

/* Where integers and pointers are passed: DWARF's numbers of rdi, rsi, rdx, rcx, r8, r9 (System V psABI for AMD64). */
extern const u8 parameter_regs[6];

/*
 * Of the function at addr, as the file has it, by the file's own debug information or its separate debug file; root: as
 * for symbols_debug_file(). False: no debug information describes the function. A parameter that the optimiser removed
 * has no register.
 */
/* Results: of C's convention (3.2.3), and of Go's ABIInternal (cmd/compile/abi-internal.md). */
bool parameters_find(struct image *img, const char *root, u64 addr, struct parameters *ret);

#endif

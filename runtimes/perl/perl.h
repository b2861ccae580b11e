/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Perl 5, what the walker and user space share: the configuration of a process in the arena, and the meaning of a
 * frame. Names of Perl's own things are those of its sources (cop.h, cv.h, intrpvar.h of 5.16 to 5.44).
 */
#ifndef YRT_PERL_H
#define YRT_PERL_H

#include <types.h>

#include "shared/frame.h"

/* Parts of the code: what a native frame there says about the contexts that were pushed below it. */
enum perl_part {
	PERL_RUNOPS,  /* runs ops: the innermost contexts, up to one that C code entered, are its own */
	PERL_RUN,     /* perl_run(): all contexts that are left are its own */
	PERL_CATCH,   /* docatch(): the loop that called it goes on in the one that it calls */
	PERL_SORT,    /* pp_sort(): keeps a context for all comparisons */
	PERL_REGEXEC, /* the same, for blocks of code in a pattern */
	PERL_ENTER,   /* call_sv() and the like around their loops: the context may be there, the loop is not */
	PERL_SCOPE,   /* where call_sv() makes and ends an eval of its own: the context may be there, no loop is */
	PERL_UNWIND,  /* die_unwind(): takes contexts away, whose loop is still there */
	PERL_PUSHING, /* of pp_entersub() and others: the newest context counts, but has not all of its members */
	PERL_POPPED,  /* of pp_leavesub() and others: the innermost context counts no more, but is there */
	PERL_DONE,    /* of docatch(): it returns, and has put PL_op back */
	PERL_NEXT,    /* of a loop: the next op is in REG_RESULT, and not in PL_op yet */
	PERL_COMPILE, /* the parser: what it compiles has its context */
	PERL_CORO,    /* Coro's library, where the native stacks of coroutines begin */
	PERL_XS = 32, /* where pp_entersub() calls a function in C: its CV is in register part - PERL_XS */
};

/* cop.h; the lower four bits of the type of a context are its kind. */
#define PERL_CX_KIND   0x0f
#define PERL_CX_REAL   0x20 /* CXt_EVAL: of a string */
#define PERL_CX_BLOCK  0x40 /* CXt_EVAL: of a block; neither: of a file */
#define PERL_CX_TRY    0x80 /* CXt_EVAL: a try block */
#define PERL_CX_SUB_RE 0x40 /* CXt_SUB: a block of code in a pattern */

/* PERLSI_…: why a stack of contexts was begun. */
enum perl_stack {
	PERL_STACK_MAIN = 1,
	PERL_STACK_MAGIC,
	PERL_STACK_SORT,
	PERL_STACK_SIGNAL,
	PERL_STACK_OVERLOAD,
	PERL_STACK_DESTROY,
	PERL_STACK_WARNHOOK,
	PERL_STACK_DIEHOOK,
	PERL_STACK_REQUIRE,
	PERL_STACK_MULTICALL,
};

#define PERL_CX_BYTES_MAX 128 /* of a context */
#define PERL_ENTRIES_MAX  8

/*
 * What the walker needs of one process. Offsets in bytes. Without MULTIPLICITY there is one interpreter, and op,
 * curcop, curstackinfo and cop_seqmax are addresses.
 */
struct perl_vm {
	u64 op, curcop, curstackinfo;
	u64 cop_seqmax;  /* 0: not known */
	u64 interpreter; /* the process's first, whose cop_seqmax is used; 0 without MULTIPLICITY */
	u64 first;       /* PL_curinterp, which has the first one's address, for as long as `via` is not known */
	u64 identity;    /* of this configuration, for the cursor */
	u64 attachment;  /* a number that no other process's configuration ever had */
	u64 coro_base;   /* the outermost frame of a coroutine seems to return here; 0: none */
	u64 compiling;   /* PL_compiling, or with MULTIPLICITY what it is a part of: the interpreter */
	u32 compiling_size;
	s32 slot; /* where a thread's interpreter is in the block that the word at `via` of its thread pointer leads to
	           */
	u16 via;
	u8 multiple;                                     /* MULTIPLICITY */
	u8 kind_sub, kind_format, kind_eval, kind_block; /* CXt_… */
	u8 multicall;                                    /* enum perl_stack: of a block that C code calls many times */
	u16 si_cxstack, si_prev, si_cxix, si_type;
	u16 cx_size, cx_oldcop, cx_retop, cx_cv, cx_format_cv, cx_eval_retop, cx_namesv;
	u16 sv_any, sv_flags, cop_line;
	u16 cv_words;                  /* from xcv_start_u, xcv_root_u, xcv_gv_u on; xcv_flags is among them */
	u16 cv_flags;                  /* in these */
	u64 entries[PERL_ENTRIES_MAX]; /* return addresses of loops that call_sv() and the like call; 0: no more */
};

/* sv.h of 5.16 to 5.44: what an SV is, in sv_flags */
#define PERL_SV_TYPE   0xff
#define PERL_SV_CV     13
#define PERL_SV_FORMAT 14

/* cv.h of 5.16 to 5.44 */
#define PERL_CV_ISXSUB  0x0008
#define PERL_CV_CLONED  0x0040 /* a closure: one of many CVs with the same code, which come and go */
#define PERL_CV_ANON    0x0080
#define PERL_CV_NAMED   0x8000
#define PERL_CV_LEXICAL 0x10000

/*
 * A frame. where: the address of the CV; of a closure without a name, that of its first op; of an eval, the statement
 * that it is in; of a file, the SV with its name; else 0; in bits that no address has, some of the op. detail: the
 * statement (COP) that runs, which gives the line: its address / 8, and more.
 *
 * The op finds the line of a statement that was optimised away (perl_names.c): of the innermost frame the op that
 * runs, of a caller the one that it goes on with. Some bits of its address are enough, because it is one of few. 0:
 * the statement was entered by C code.
 *
 * A BEGIN block, as of `use`, and the statement that is made for its call are freed behind it, and the next ones take
 * their place. So BEGIN blocks have the line in place of the op and the cookie. So has what is no sub and has no op:
 * what C code was called from, and what is compiled.
 */
enum perl_kind {
	PERL_KIND_SUB,
	PERL_KIND_XS,
	PERL_KIND_FORMAT,
	PERL_KIND_EVAL, /* eval {} */
	PERL_KIND_TRY,
	PERL_KIND_STRING,  /* eval "" */
	PERL_KIND_REQUIRE, /* require, do FILE */
	PERL_KIND_SORT,    /* a block of sort */
	PERL_KIND_PATTERN, /* (?{ }) */
	PERL_KIND_MAIN,
	PERL_KIND_CLOSURE, /* a sub, as said above */
	PERL_KIND_RENAMED, /* a closure that Sub::Util::set_subname() or the like gave a name */
	PERL_KIND_UNREAD,  /* a sub whose body could not be read: naming reads what the walker could not */
	PERL_KINDS,
};

#define PERL_COP_BITS     44
#define PERL_KIND_BITS    4
#define PERL_STACK_BITS   3
#define PERL_OP_BITS      8 /* others are in where: perl_where() */
#define PERL_OP_LOW       7
#define PERL_OP_MASK      2047
#define PERL_COOKIE_BITS  5
#define PERL_KIND_SHIFT   PERL_COP_BITS
#define PERL_STACK_SHIFT  (PERL_KIND_SHIFT + PERL_KIND_BITS)
#define PERL_OP_SHIFT     (PERL_STACK_SHIFT + PERL_STACK_BITS)
#define PERL_COOKIE_SHIFT (64 - PERL_COOKIE_BITS)
#define PERL_OP_RUNS      0x10000 /* it is the one that runs */
#define PERL_OBJECT       ((1ull << 47) - 1 - PERL_OP_LOW)

#define PERL_LINE     0x8000 /* of the 16 bits of op and cookie: the others are the line */
#define PERL_LINE_MAX 0x7fffu

/* Of the op at this address. Those of a statement lie side by side in slabs (op.c) of 16 KB at most. */
static inline u32 perl_op_bits(u64 op, bool runs)
{
	u32 bits = (u32)(op >> 3) & PERL_OP_MASK;

	return bits ? bits | (runs ? PERL_OP_RUNS : 0) : 0;
}

/* What a name says of the stack of contexts that a sub began, in 3 bits. */
static inline u32 perl_stack_bits(u32 stack)
{
	if (stack == PERL_STACK_DIEHOOK)
		return PERL_STACK_DESTROY; /* which no name says, as the next */
	if (stack == PERL_STACK_REQUIRE)
		return PERL_STACK_MAIN;
	return stack == PERL_STACK_DESTROY || stack == PERL_STACK_MAIN || stack > PERL_STACK_REQUIRE ? 0 : stack & 7;
}

static inline u64 perl_detail(u64 cop, u32 kind, u32 stack, u32 op)
{
	return (cop >> 3 & ((1ull << PERL_COP_BITS) - 1)) | (u64)kind << PERL_KIND_SHIFT |
	       (u64)perl_stack_bits(stack) << PERL_STACK_SHIFT |
	       (u64)((op & (PERL_LINE | PERL_LINE_MAX)) >> 3) << PERL_OP_SHIFT;
}

/* The object's address, and in bits that it has not those of the op that detail has no room for. */
static inline u64 perl_where(u64 object, u32 op)
{
	object = (object & PERL_OBJECT) | (op & PERL_OP_LOW) | (u64)(op & PERL_OP_RUNS) << (47 - 16);
	return frame_where(FRAME_SCRIPT, RUNTIME_PERL, 0, object);
}

static inline u64 perl_cop(u64 detail)
{
	return (detail & ((1ull << PERL_COP_BITS) - 1)) << 3;
}

/* Without what moves on while a frame runs: the statement and the op. */
static inline u64 perl_without_cop(u64 detail)
{
	return detail & ~((1ull << PERL_COP_BITS) - 1) & ~(((1ull << PERL_OP_BITS) - 1) << PERL_OP_SHIFT);
}

static inline u32 perl_kind(u64 detail)
{
	return (u32)(detail >> PERL_KIND_SHIFT) & 15;
}

static inline u32 perl_stack(u64 detail)
{
	u32 stack = (u32)(detail >> PERL_STACK_SHIFT) & 7;

	return stack == PERL_STACK_DESTROY ? PERL_STACK_DIEHOOK : stack == PERL_STACK_MAIN ? PERL_STACK_REQUIRE : stack;
}

static inline u32 perl_cookie_of(u64 detail)
{
	return (u32)(detail >> PERL_COOKIE_SHIFT);
}

/* The frame's address without the bits of the op. */
static inline u64 perl_object(const struct frame *f)
{
	return f->where & PERL_OBJECT;
}

/* Does it have a line in place of op and cookie? */
static inline bool perl_has_line(const struct frame *f)
{
	u32 kind = perl_kind(f->detail);

	if (kind == PERL_KIND_SUB || kind >= PERL_KIND_CLOSURE)
		return perl_stack(f->detail) == PERL_STACK_REQUIRE;
	return kind >= PERL_KIND_EVAL && kind != PERL_KIND_PATTERN && f->detail >> 63;
}

/* 0: not known */
static inline u32 perl_line(const struct frame *f)
{
	return ((u32)(f->detail >> PERL_OP_SHIFT) << 3 | ((u32)f->where & PERL_OP_LOW)) & PERL_LINE_MAX;
}

/* 0: it has none */
static inline u32 perl_op(const struct frame *f)
{
	u32 high = (u32)(f->detail >> PERL_OP_SHIFT) & ((1u << PERL_OP_BITS) - 1);
	u32 runs = (u32)(f->where >> (47 - 16)) & PERL_OP_RUNS;

	return perl_has_line(f) ? 0 : runs | high << 3 | ((u32)f->where & PERL_OP_LOW);
}

/* What kind of frame a sub with these flags has. */
static inline u32 perl_kind_of_cv(u32 flags)
{
	if ((flags & (PERL_CV_CLONED | PERL_CV_NAMED)) != PERL_CV_CLONED)
		return PERL_KIND_SUB;
	return flags & PERL_CV_ANON ? PERL_KIND_CLOSURE : PERL_KIND_RENAMED;
}

/*
 * Distinguishes a CV from a later one at its address. words: of its body, struct perl_vm's cv_words. set_subname()
 * gives a closure a new GV each time it is called, and some call it before each call of the closure (Moose's
 * modifiers): the GV says nothing then.
 */
#define PERL_CV_WORDS 7
static inline u64 perl_cv_hash(u64 body, const u64 *words, u32 kind)
{
	u64 gv = kind == PERL_KIND_RENAMED ? 0 : words[2];

	return (body ^ words[0] << 7 ^ words[1] << 3 ^ gv) * 0x9e3779b97f4a7c15ull;
}

static inline u32 perl_cookie(u64 body, const u64 *words, u32 kind)
{
	return (u32)(perl_cv_hash(body, words, kind) >> (64 - PERL_COOKIE_BITS));
}

#endif

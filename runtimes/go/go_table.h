/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pclntab: what a Go program knows of its own functions, stripped or not: extents, names, files, lines, the size of the
 * frame at each pc, and which functions are inlined there. Layouts by the magic number of its head: Go 1.2
 * (to 1.15), 1.16 (and 1.17), 1.18 (and 1.19), 1.20 (and what came since).
 *
 * Sources: runtime/symtab.go, runtime/runtime2.go (_func), runtime/symtabinl.go, internal/abi/symtab.go of
 * Go 1.11, 1.12, 1.13, 1.15 to 1.21, 1.23, 1.25 to 1.27, and cmd/link/internal/ld/pcln.go.
 */
#ifndef YRT_GO_TABLE_H
#define YRT_GO_TABLE_H

#include <types.h>

#include "error.h"
#include "go_file.h"

enum go_magic { /* in the order of time */
	GO_MAGIC_1_2,
	GO_MAGIC_1_16,
	GO_MAGIC_1_18,
	GO_MAGIC_1_20,
	GO_MAGICS,
};

/* How inlined calls are recorded: the numbers of the tables, and what an entry looks like. */
struct go_inlining {
	u8 pcdata, funcdata; /* indexes */
	u8 size;             /* of an entry; 0: unknown */
	u8 name, parent_pc;  /* offsets in it */
	u8 start_line;       /* the same; 0: it has none */
};

struct go_table {
	struct go_file file;
	enum go_magic magic;
	bool garbled;  /* the magic number is another one: garble (mvdan.cc/garble) gives each program its own */
	u32 entry_key; /* _func.entryOff is what it should be, xor the offset of the name times this; 0: as it should */
	u64 addr;      /* of the head; all addresses are the file's */
	u32 nfunctions;
	u64 text; /* what entries are relative to; 0 before 1.18 */
	u64 names, units, files, pcs, functions;
	u64 end;    /* behind the last function */
	u64 gofunc; /* what funcdata is relative to, from 1.18 on */
	u64 module; /* of runtime.firstmoduledata; 0: not found */
	struct go_inlining inlining;
	u32 runtime_first, runtime_end; /* of go_runtime_functions(); 0: not looked for yet */
	u8 wrapper;                     /* of go_wrapper_id(); 0: not looked for yet */
};

struct go_function {
	u64 start, end;
	u64 at; /* of its struct _func */
	u32 name;
	u32 pcsp, pcfile, pcln; /* offsets of tables in pctab; 0: none */
	u32 unit;
	u32 start_line; /* 0: unknown */
	u32 npcdata, nfuncdata;
	u8 id;
	u8 flags;
	u64 pcdata, funcdata; /* addresses of the two arrays */
};

#define GO_WRITES_SP 2 /* of flags, since 1.17: abi.FuncFlagSPWrite, assembly that pcsp does not follow */

/* A position in a table of values by pc. A value holds from `from` until `pc`. */
struct go_pcs {
	struct go_table *t;
	u64 at;
	u64 from, pc;
	s32 value;
	u32 seen; /* values */
};

/* Finds and checks the table. *ret is NULL if the file is no Go program; an error says that it is one of a layout that
 * is not known. */
struct error *go_table_open(struct image *img, struct go_table **ret);
void go_table_close(struct go_table *t);

/* Sets entry_key, by what the table of functions says of the same entries: garble's internal/linker/patches. */
void go_table_find_key(struct go_table *t);

/* Function i, in order of addresses. */
bool go_function_at(struct go_table *t, u32 i, struct go_function *ret);
/*
 * Is it C, which Go's own linker took from an object file (race, cgo in the standard library)? The table has no sizes
 * for it.
 */
static inline bool go_function_is_c(const struct go_function *fn)
{
	return !fn->pcsp;
}

/* The one that has this address. */
bool go_function_find(struct go_table *t, u64 addr, struct go_function *ret);
u32 go_function_name(struct go_table *t, const struct go_function *fn, char *ret, u32 max);
/* A name by its offset in the names. */
u32 go_name(struct go_table *t, u32 name, char *ret, u32 max);
/*
 * The same without type arguments, as Go prints it (runtime/symtab.go: funcNamePiecesForPrint): main.Map[...] for
 * main.Map[go.shape.int]. They can be longer than any buffer.
 */
u32 go_short_name(struct go_table *t, u32 name, char *ret, u32 max);

void go_pcs_start(struct go_pcs *p, struct go_table *t, const struct go_function *fn, u32 table);
/* To the next value. False: the end, or corrupt. */
bool go_pcs_next(struct go_pcs *p);
/* The value at an address of fn. */
bool go_pcs_find(struct go_table *t, const struct go_function *fn, u32 table, u64 addr, s32 *ret);

/* File ("" if unknown) and line (0) of an address. */
u32 go_line(struct go_table *t, const struct go_function *fn, u64 addr, char *file, u32 max);

#define GO_NOT_INLINED (-1)
/* The inlined call that addr is in, the innermost: an index in the function's tree; or GO_NOT_INLINED. */
s32 go_inlined_at(struct go_table *t, const struct go_function *fn, u64 addr);
/* Its name, and the address that it was called at in place of a call instruction. False: corrupt. */
bool go_inlined_call(struct go_table *t, const struct go_function *fn, s32 index, u32 *name, u64 *caller);
/* The line where the function that was inlined begins; 0: unknown. */
u32 go_inlined_start(struct go_table *t, const struct go_function *fn, s32 index);

/*
 * What _func.funcID is of functions that only the compiler made: the highest of all (internal/abi/symtab.go:
 * FuncIDWrapper comes last in all releases).
 */
u8 go_wrapper_id(struct go_table *t);

/*
 * Function i and its name, if it may be one of the runtime's assembly: those that need more than the table gives.
 * False: it can not.
 */
#define GO_SPECIAL_MAX 40
bool go_special_name(struct go_table *t, u32 i, struct go_function *fn, char *ret);

/* The one of the functions that have this name for which accept says true; accept NULL: the first. */
struct go_wanted {
	const char *name;
	bool found;
	struct go_function fn;
	bool (*accept)(struct go_table *t, const struct go_function *fn);
};
/* The numbers of functions among which the runtime's are: the linker puts those of a package together. None: *end is 0.
 */
void go_runtime_functions(struct go_table *t, u32 *first, u32 *end);
/* Looks for all of n among the runtime's functions; among all if the first of them is not there. */
void go_functions_named(struct go_table *t, struct go_wanted *wanted, u32 n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of the CFI compiler (cfi_compile.c), in order: cfi_parse.c finds the CIEs and FDEs, cfi_functions.c
 * orders the functions, cfi_exec.c runs an FDE's instructions into entries, cfi_layout.c packs
 * entries into pieces, cfi_cache.c keeps the result.
 */
#ifndef YRT_CFI_INTERNAL_H
#define YRT_CFI_INTERNAL_H

#include "cfi.h"
#include "cfi_cursor.h"
#include "shared/region.h"

#define CFI_PIECE_MAX (ARENA_SLAB_SIZE - 64)

/* Where the caller's value of a register lies, before it becomes a slot. */
enum cfi_how {
	HOW_UNSPECIFIED,
	HOW_SAME,
	HOW_UNDEFINED,
	HOW_OFFSET,   /* at CFA + offset */
	HOW_BASE,     /* at reg[reg] + offset */
	HOW_REGISTER, /* in reg; of the stack pointer: it is reg + offset */
	HOW_LOST,     /* given in a form that rows do not have */
};

struct cfi_saved {
	u8 how; /* enum cfi_how */
	u8 reg;
	s32 offset;
};

struct cfi_cfa {
	u8 kind; /* CFI_NONE: not given yet */
	u8 reg;
	u8 index;
	s32 offset;
	s32 add;
	s16 between;
};

/* One row of the abstract table that CFI instructions build. */
struct cfi_state {
	struct cfi_cfa cfa;
	s32 cfa_offset; /* of the last plain CFA; an expression leaves it standing */
	struct cfi_saved saved[ARCH_NREGS];
};

struct cfi_source {
	const u8 *data;
	size_t size;
	u64 addr; /* of data[0] in the image; pc-relative pointers count from here */
	bool debug;
	bool open; /* its size is only a bound: ends at the terminator */
};

struct cfi_cie {
	const struct cfi_source *source;
	u64 offset; /* in its source */
	bool bad;
	bool sized; /* augmentation 'z' */
	bool signal;
	u8 encoding; /* DW_EH_PE_* of FDE addresses */
	u64 code_align;
	s64 data_align;
	u64 return_column;
	struct cfi_state initial;
};

/* In place of a CIE's number, for functions that the file has no FDE of */
#define CFI_CIE_ROOT     UINT32_MAX       /* the entry point, which has no caller */
#define CFI_CIE_STUB     (UINT32_MAX - 1) /* stubs that leave the stack alone */
#define CFI_CIE_CODE     (UINT32_MAX - 2) /* what the code itself shows */
#define CFI_CIE_PROVIDED (UINT32_MAX - 3) /* what a struct cfi_provider gives */
#define CFI_CIE_BODY     (UINT32_MAX - 4) /* as CFI_CIE_CODE, in place of an FDE */

struct cfi_function {
	u64 start, end;
	const u8 *code;
	u32 code_size; /* CFI_CIE_CODE, _BODY: number of its first row; CFI_CIE_PROVIDED: its number there */
	u32 cie;       /* index, or one of the above */
};

struct cfi_parsed {
	struct cfi_source source[2];
	void *owned; /* bytes of .eh_frame */
	struct cfi_cie *cies;
	u32 ncies, cies_room;
	u32 *cie_hash; /* index + 1; 0: free */
	u32 cie_hash_size;
	struct cfi_function *functions; /* sorted by start; may overlap */
	size_t nfunctions, functions_room;
	u64 ncorrupt;
};

/* Every FDE of the image. Never fails but for memory. Free with cfi_parsed_free(), also on failure. */
struct error *cfi_parse(struct image *img, struct image *debug, struct cfi_parsed *ret);
/* Adds the FDEs of one more source, which must stay, of functions in the code of img. */
struct error *cfi_parse_source(struct image *img, struct cfi_parsed *p, const struct cfi_source *source);
void cfi_parsed_free(struct cfi_parsed *parsed);

/* A pointer of this encoding at the cursor; sets c->bad for what cannot be followed without the running process. */
u64 cfi_pointer(struct cfi_cursor *c, const struct cfi_source *source, u8 encoding);

/* Zeroed, there are none. Free entry. */
struct cfi_rows {
	struct cfi_entry *entry;
	size_t n, room;
};

/* Appends a row. False: no memory. */
bool cfi_rows_add(struct cfi_rows *rows, u64 addr, const struct cfi_rule *rule);

/* Runs the initial instructions of a CIE into cie->initial. False: corrupt. */
bool cfi_run_cie(struct cfi_cie *cie, const u8 *code, size_t size);

enum cfi_run {
	CFI_RUN_OK,
	CFI_RUN_CORRUPT,
	CFI_RUN_NO_MEMORY,
};

/* Appends the entries of a function to rows. */
enum cfi_run cfi_run_function(const struct cfi_cie *cie, const struct cfi_function *fn, struct cfi_rows *rows);

/*
 * Rows from the code itself, for files without FDEs: musl's libraries, and programs built with
 * -fno-asynchronous-unwind-tables. Instructions are followed from the beginnings of functions (symbols, targets of
 * calls, addresses that instructions load) along all jumps. What each does to the stack pointer, and where it saves
 * registers, gives the rows.
 *
 * The code behind a call is followed only if the callee can return: most code behind calls of exit(), and of functions
 * that end in it, is another function's. Where the stack pointer is no longer known there are no rows. Cases of a jump
 * table that nothing else leads to have the stack of the jump. `xor %ebp, %ebp` before rbp was saved marks the
 * outermost frame (System V ABI, AMD64 supplement, 3.4.1); musl's clone() does that for threads. A signal handler's
 * return (mov $15, %rax; syscall) is recognised by its bytes.
 *
 * In a file that has FDEs for most of its code, or is large, the gaps between FDEs are followed in the same way, with
 * three differences: no root but clone()'s child and bottoms of stacks, because assembly keeps data in rbp; cases of a
 * switch are also found from the number that was compared; and rows are CFI_FROM_CODE. A stack pointer that was
 * rounded down is followed by the register or slot that kept its old value. test_code_oracle.c is the proof.
 */
struct cfi_code {
	struct cfi_entry *rows;
	struct cfi_function *runs; /* stretches of rows; sorted */
	u32 nrows, nruns, rows_room, runs_room;
};

/* covered: how many bytes of code FDEs cover. Is it less than half? */
bool cfi_covers_little(const struct image *img, u64 covered);
/*
 * Should the code be followed? All of it (cfi_code_whole()) if little is covered and the file has at most 1 MiB, or if
 * next to nothing is covered (a program of Free Pascal) and it has at most 4 MiB, provided that the result keeps to the
 * calling convention. In a larger file, or one where much is covered, the gaps between FDEs in .text: these are
 * assembly by hand (linear algebra, bignums, codecs, ciphers). Programs of Go have other tables.
 */
bool cfi_code_wanted(const struct image *img, u64 covered);
bool cfi_code_whole(const struct image *img, u64 covered);
/* Follows the code that no function of parsed covers. Only fails for memory; free ret in any case. */
struct error *cfi_code_find(struct image *img, const struct cfi_parsed *parsed, struct cfi_code *ret);
/* The same of what lies between functions of parsed, which are sorted. */
struct error *cfi_code_find_gaps(struct image *img, const struct cfi_parsed *parsed, struct cfi_code *ret);
/*
 * The same for code in memory, in each segment in which a function of parsed begins: LLVM's JIT compilers describe no
 * functions that throw nothing.
 */
struct error *cfi_code_find_in_memory(struct image *img, const struct cfi_parsed *parsed, struct cfi_code *ret);
/*
 * Rows of the function that begins at start and has pc in it, and of those that it calls, of code in [start, end), of
 * one segment. None if what is there cannot be such a function: each way through it has to end with the caller's stack
 * and registers, one of them in a return. Only fails for memory.
 */
struct error *cfi_code_find_function(struct image *img, u64 start, u64 end, u64 pc, struct cfi_code *ret);
/* Is the CFA found by the stack pointer at a function's first instruction? */
bool cfi_begins_plainly(const struct cfi_cie *cie);
/* Room for one more behind n in one of the arrays of struct cfi_code, or one like it. */
struct error *cfi_reserve(void *array, u32 n, u32 *room, size_t size);
/*
 * Takes FDEs from parsed that describe many functions at once by their frame pointers (Dart's compiler): this holds in
 * bodies of functions, not at their beginnings and ends, and not in functions without a frame. Adds these functions,
 * with rows from the code. Where that says nothing the FDE's rule stays. Only fails for memory.
 */
struct error *cfi_code_find_bodies(struct image *img, struct cfi_parsed *parsed, struct cfi_code *ret);
/* Rows of code between functions of parsed that keeps a stack of its own (cfi_own_stack.c). Only fails for memory. */
struct error *cfi_own_stack_find(struct image *img, const struct cfi_parsed *parsed, struct cfi_code *ret);
/* Rows of much code between functions of parsed whose frames are of fixed size (cfi_fixed_frames.c). The same. */
struct error *cfi_fixed_frames_find(struct image *img, const struct cfi_parsed *parsed, struct cfi_code *ret);
void cfi_code_free(struct cfi_code *code);
/* Compiles them. */
struct error *cfi_from_code(const struct cfi_code *code, struct cfi **ret);

/* The row for a state. */
void cfi_rule_of(const struct cfi_state *state, const struct cfi_cie *cie, struct cfi_rule *ret);
/*
 * Corrects the rows of a function that ends in gcc's __builtin_eh_return() (cfi_eh_return.c). False: no memory.
 */
struct image_pages;
bool cfi_eh_return_mend(struct image_pages *text, struct cfi_rows *rows);
/* Corrects the rows of StgRun(), whose CFI is that of its body only (cfi_own_stack.c). False: no memory. */
bool cfi_own_stack_mend(struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows);
/* Of a kind that needs no registers: CFI_ROOT, CFI_NONE. */
struct cfi_rule cfi_bare_rule(enum cfi_kind kind);
/* At a function's first instruction: nothing but the return address is on the stack. */
struct cfi_rule cfi_plain_rule(enum cfi_kind kind);

/* The head and the size of a table of these numbers; UINT32_MAX if no piece could hold it. */
u32 cfi_table_size(u32 npages, u32 nrows, u32 nrules, struct cfi_table *ret);

struct cfi_layout;

struct error *cfi_layout_create(struct cfi_layout **ret);
void cfi_layout_destroy(struct cfi_layout *l);
/* rule holds from addr on; addr never descends. The first row opens a piece. */
struct error *cfi_layout_row(struct cfi_layout *l, u64 addr, const struct cfi_rule *rule);
/* Nothing is known from addr on; the next row may lie anywhere behind. */
struct error *cfi_layout_end(struct cfi_layout *l, u64 addr);
/* Moves the pieces and the functions into ret. */
struct error *cfi_layout_finish(
        struct cfi_layout *l, const struct cfi_fde *fdes, u32 nfdes, u64 ncorrupt, struct cfi **ret);

/*
 * A compiled table in one run of bytes, as it lies in the cache file and in memory: the head, the pieces' places, the
 * functions, the pieces.
 */
struct cfi_blob {
	char magic[8];
	u32 version;
	u32 identity_len;
	u64 checksum; /* XXH3 of all that follows this field */
	u64 size;     /* of the blob */
	u64 image_size;
	u64 debug_size; /* of the separate debug file; 0: none */
	u64 ncorrupt;
	u32 npieces;
	u32 nfdes;
	u8 identity[BUILD_ID_MAX]; /* image_identity() */
};

struct cfi_blob_piece {
	u64 start, end;
	u64 offset;
	u64 size;
};

/* Compiles the tables of a file, without the cache. Only fails for memory. */
struct error *cfi_compile(struct image *img, const struct cfi_options *options, struct cfi **ret);

/* Makes a struct cfi refer to a blob, which must have been checked. It then owns the blob (mapped: by mmap). */
struct error *cfi_from_blob(struct cfi_blob *blob, bool mapped, struct cfi **ret);
struct cfi_blob *cfi_blob_of(const struct cfi *cfi);

/* NULL: not there, or not to be trusted, or no memory. */
struct cfi *cfi_cache_load(const char *dir, const struct image *img, u64 debug_size);
/* Best effort. */
void cfi_cache_store(const char *dir, const struct image *img, u64 debug_size, struct cfi *cfi);

#endif

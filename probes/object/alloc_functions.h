/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation functions of a file, by the names that C, POSIX and the C++ ABI give them. Any allocator has them,
 * whether it is libc's own, was preloaded or linked in.
 */
#ifndef YRT_ALLOC_FUNCTIONS_H
#define YRT_ALLOC_FUNCTIONS_H

#include "unwind/shared/alloc_shape.h"
#include "unwind/binary/image.h"
#include "unwind/error.h"
#include "unwind/process/process.h"

#define ALLOC_FUNCTIONS_MAX 128
#define ALLOC_RETURNS_MAX   512
#define ALLOC_INNER_MAX     1024
#define ALLOC_RANGES_MAX    48

struct alloc_function {
	const char *name; /* as in the file */
	enum alloc_shape shape;
	u64 addr;     /* in the file */
	u64 place;    /* of its uprobe, in the file: arguments have their registers there */
	u64 offset;   /* the same, in the file's bytes */
	u64 pair;     /* file offset of the next instruction, if the kernel emulates that as well; 0: it does not */
	u32 pushed;   /* words that it has pushed by then */
	bool moved;   /* what was in the first argument's register is in the second one's there */
	bool stepped; /* the kernel does not emulate the instruction there */
	bool tails;   /* it may end in a jump to another one */
	u32 operand;  /* of ALLOC_AT: what has the size */
	bool wrapper; /* it does nothing but jump to another one: that one is probed */
};

struct alloc_functions {
	struct alloc_function of[ALLOC_FUNCTIONS_MAX];
	u32 n;
	struct { /* calls of one of them from their own code: */
		u32 function;
		u64 to; /* where they return */
	} inner[ALLOC_INNER_MAX];
	u32 ninner;
	u64 outside[ALLOC_INNER_MAX]; /* where calls of another file's mmap() and sbrk() from that code return */
	u32 noutside;
	struct {               /* where one of them, or what it jumps to, returns */
		u64 offset;    /* in the file's bytes */
		bool clearing; /* by a jump to memset(), whose first argument is the block */
	} returns[ALLOC_RETURNS_MAX];
	u32 nreturns;
	struct { /* code of the allocator, in the file: of these functions, and what they call */
		u64 start, end;
	} code[ALLOC_RANGES_MAX];
	u32 ncode;
};

/* Adds one, unless its code is there already. */
void alloc_functions_add(struct alloc_functions *f, const char *name, enum alloc_shape shape, u64 addr);
/* Reads the code of those that were added. */
struct error *alloc_functions_read(struct image *img, struct alloc_functions *f);
/* symbols_load() of the image was called. n is 0 if it has no malloc(). Nothing is allocated. */
struct error *alloc_functions_find(struct image *img, struct alloc_functions *ret);
/* What replaces malloc() so that its calls say little ("AddressSanitizer"); NULL: nothing does in this file. */
const char *alloc_functions_refused(struct image *img);
/* Which command shows blocks that code of this file takes from a heap of its own; NULL: it has none. */
const char *alloc_functions_own_heap(struct image *img);
/* The allocator that the file is or has, by names that only it exports, or its messages; NULL: another one. */
const char *alloc_functions_kind(struct image *img);
/* The allocator that is linked into a file without the names of its functions (alloc_nameless.h); NULL: none. */
const char *alloc_functions_nameless(struct image *img);

/*
 * "libc.so.6 (glibc), php8.2 (a heap of its own), fd (jemalloc, found by its code)": the files of a process that have
 * malloc(), or else a heap.
 */
void alloc_functions_text(const struct process *p, char *text, size_t size);
/* Is it a library that is nothing but an allocator, by its name? Its calls of mmap() are not the program's then. */
bool alloc_functions_are_all(struct image *img);

#endif

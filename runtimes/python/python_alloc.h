/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython makes the memory of its objects (3.6 to 3.15). PyObject_Malloc() and PyMem_Malloc() call what a table
 * of pointers says (Objects/obmalloc.c: PyMemAllocatorEx is ctx, malloc, calloc, realloc, free), which is pymalloc
 * unless a tool has put itself in between: tracemalloc, PYTHONMALLOC. Those functions are what is probed.
 *
 * GCC with a profile copies pymalloc into who calls it, behind a guard: if the pointer in the table is that of
 * _PyObject_Malloc, the copy is executed, else what the pointer says (190 places in Debian's python3.11, which is not
 * linked with libpython). There the guard's jump is probed, too. The code for the other case puts the size into the
 * register of an argument, and so says where it is. Direct calls of _PyObject_Malloc in such a file follow a guard, or
 * come from the copy of a realloc: they are told from those by the table.
 */
#ifndef YRT_PYTHON_ALLOC_H
#define YRT_PYTHON_ALLOC_H

#include "python_image.h"
#include "runtime_allocator.h"

#define PYTHON_GUARDS_MAX 300
#define PYTHON_DIRECT_MAX 100

struct python_guard {
	u64 at;      /* the jump, file address */
	u32 operand; /* ALLOC_OPERAND_REGISTER … */
};

struct python_guards {
	struct python_guard of[PYTHON_GUARDS_MAX];
	u32 n;
	struct python_direct {
		u64 at;
		bool call; /* a jump otherwise */
	} direct[PYTHON_DIRECT_MAX];
	u32 ndirect;
	u32 unknown; /* more of them, whose sizes nobody knows, or that there was no room for */
};

enum python_allocating { PYTHON_MALLOC = 1, PYTHON_CALLOC, PYTHON_REALLOC }; /* places in the table */

/* Adds the guards of copies, and direct calls, of this function (file address). */
struct error *python_guards_find(
        struct image *img, u64 function, enum python_allocating kind, struct python_guards *ret);

/* runtime_allocator_ops.find; bias: of the interpreter's file */
u32 python_allocators(
        u64 bias, const struct runtime_process *p, struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown);

#endif

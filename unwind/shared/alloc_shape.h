/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How an allocation function is called: what the cookie of its uprobe says to BPF. */
#ifndef YRT_ALLOC_SHAPE_H
#define YRT_ALLOC_SHAPE_H

enum alloc_shape {          /* where the size is */
	ALLOC_SIZE_1,       /* f(size, …) */
	ALLOC_SIZE_2,       /* f(x, size, …) */
	ALLOC_SIZE_3,       /* f(x, y, size) */
	ALLOC_SIZE_PRODUCT, /* f(n, size) */
	ALLOC_RESIZE,       /* f(block, size): 0 frees a block */
	ALLOC_PRODUCT_2,    /* f(x, n, size) */
	ALLOC_RESIZE_2,     /* f(x, block, size) */
	ALLOC_AT,           /* no function's entry: an instruction, where ALLOC_COOKIE_OPERAND says */
	ALLOC_BEFORE,       /* a direct call (operand 1) or jump (0) to one of the functions, which counts elsewhere */
	ALLOC_RESIZE_OF,    /* f(x, block, old size, new size), as lua_Alloc: 0 frees a block */
	ALLOC_ANY,          /* f(…): what it does with its arguments is known elsewhere */
	ALLOC_MAP,          /* f(address, size, protection, flags, …): only memory without a file */
	ALLOC_MOVE_END,     /* f(increment) of the heap's end, which may be below 0 */
	ALLOC_FREE,         /* f(block, …) */
	ALLOC_FREE_2,       /* f(x, block, …) */
};

#define ALLOC_COOKIE_SHAPE(cookie)   ((cookie)&0xff)
#define ALLOC_COOKIE_PUSHED(cookie)  ((cookie) >> 8 & 0xff)        /* words on the stack above the return address */
#define ALLOC_COOKIE_TAILS(cookie)   ((cookie) >> 16 & 1)          /* it may end in a jump to another one */
#define ALLOC_COOKIE_ALL(cookie)     ((cookie) >> 17 & 1)          /* inner calls count, too */
#define ALLOC_COOKIE_STEPPED(cookie) ((cookie) >> 18 & 1)          /* the kernel does not emulate the instruction */
#define ALLOC_COOKIE_QUANTUM(cookie) (((cookie) >> 19 & 3) * 8)    /* of jemalloc with a counter; 0: it has none */
#define ALLOC_COOKIE_NUMBER(cookie)  ((cookie) >> 24 & 0xffffffff) /* of the function */

/*
 * Of ALLOC_AT: what has the size; of ALLOC_BEFORE as said there. In place of the number: such a place is no function's.
 */
#define ALLOC_COOKIE_OPERAND(cookie) ((cookie) >> 24 & 0xffffffff)
#define ALLOC_OPERAND_REGISTER       0x80000000u /* | DWARF number of a register | times what << 8 (0: 1) */
#define ALLOC_OPERAND_STACK          0x40000000u /* | distance of the word above the stack pointer */
#define ALLOC_OPERAND_PRODUCT        0x20000000u /* | one register | another one << 8: of both */
#define ALLOC_OPERAND_VALUE          0x1fffffffu /* what these have, else the size itself */

/* Where a call of mmap() or sbrk() returns to an allocator that lies in another file. */
struct alloc_outside {
	unsigned long addr; /* in the process */
	unsigned int tgid, reserved;
};

/* What a call of function `number` has as the distance from the probed place to its return address, if it is inner. */
static inline __attribute__((always_inline)) unsigned long alloc_inner_key(unsigned long number, long distance)
{
	return number << 32 | (unsigned int)distance;
}

#endif

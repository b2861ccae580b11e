/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * CPython, what the walker and user space share: the configuration of a process in the arena, and the meaning of a frame.
 * Names of Python's own things are those of its sources (Include/internal/pycore_frame.h, Include/cpython/pystate.h,
 * Include/cpython/code.h of 3.11 to 3.13).
 */
#ifndef YRT_PYTHON_H
#define YRT_PYTHON_H

#include <types.h>

#include "shared/frame.h"

/* Parts of the code. */
enum python_part {
	PYTHON_EVAL, /* the eval loop: one native frame of it runs the Python frames up to its entry frame */
};

/* How a native frame of the eval loop and its Python frames belong together. */
enum python_linkage {
	PYTHON_ENTRY_FLAG,  /* 3.11: the last frame has is_entry; a _PyCFrame in the native frame leads to the first */
	PYTHON_ENTRY_OWNER, /* 3.12: a frame without code, owned by the C stack, ends them; a _PyCFrame, too */
	PYTHON_ENTRY_STACK, /* 3.13: no _PyCFrame; the frame that ends them lies in the native frame */
};

/*
 * What the walker needs of one process. Offsets in bytes; those of an interpreter frame and of a code object are below
 * PYTHON_OBJECT_BYTES.
 */
struct python_vm {
	u64 code_type; /* address of PyCode_Type */
	u64 key;       /* address of the TSS key of thread states (Py_tss_t); 0: unknown */
	u32 slot;      /* where the thread state's pointer lies from the thread pointer; 0: unknown, by the key */
	u32 eval_max;  /* bytes of the largest native frame of the eval loop */
	u16 ts_frame;  /* PyThreadState: its cframe, or current_frame without _PyCFrame */
	u16 cf_frame, cf_previous; /* _PyCFrame */
	u16 f_code, f_previous, f_instr; /* _PyInterpreterFrame */
	u16 f_entry; /* byte: is_entry, or owner */
	u16 co_firstlineno; /* s32 */
	u16 co_qualname;
	u16 co_code; /* bytecode begins here */
	u8 linkage;  /* enum python_linkage */
	u8 reserved[3];
};
_Static_assert(sizeof(struct python_vm) == 48, "read as it is by the walker");

/*
 * Where glibc keeps the values of the first 32 keys of a thread, from its thread pointer: pairs of a sequence number and
 * a value (struct pthread's specific_1stblock). An assumption for processes that have no thread state yet; those that
 * have are looked at (python_threads.h).
 */
#define PYTHON_TSS_BLOCK 0x310
#define PYTHON_TSS_KEYS	 32

#define PYTHON_OWNER_NONE 3 /* _PyInterpreterFrame.owner from 3.12: from here on it stands for no Python function */

/*
 * FRAME_SCRIPT of RUNTIME_PYTHON: addr is the code object, detail the position (number of the 2-byte code unit being
 * executed, PYTHON_NO_POS if not in the code) in the lower half, a cookie in the upper half that tells whether another
 * code object has taken the place of a freed one.
 */
#define PYTHON_NO_POS	    0xffffffu
#define PYTHON_COOKIE_BITS  32
#define PYTHON_OBJECT_BYTES 128 /* read of an object at once */
#define PYTHON_OBJECT_WORDS (PYTHON_OBJECT_BYTES / 8)
#define PYTHON_FRAME_BYTES  88	/* of an interpreter frame */

/* firstlineno and the name's address: both are constant in the life of a code object. */
static inline u32 python_cookie(u32 firstlineno, u64 qualname)
{
	u64 mix = (qualname ^ (u64)firstlineno << 40) * 0x9e3779b97f4a7c15ull;

	return (u32)(mix >> 32);
}

static inline u64 python_detail(u32 cookie, u32 pos)
{
	return (u64)cookie << PYTHON_COOKIE_BITS | pos;
}

static inline u32 python_pos(const struct frame *f)
{
	return (u32)f->detail;
}

/*
 * The cursor of a walk: key is PyCode_Type, at the next interpreter frame (PYTHON_AT_END: none), more[0] the next
 * _PyCFrame. vm_state is 1 while the frames of one native frame are being pushed.
 */
#define PYTHON_AT_END 1

#endif

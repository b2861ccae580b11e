/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * CPython, what the walker and user space share: the configuration of a process in the arena, and the meaning of a
 * frame. Names of Python's own things are those of its sources (Include/internal/pycore_frame.h,
 * Include/cpython/pystate.h, Include/cpython/code.h of 3.6 to 3.15).
 */
#ifndef YRT_PYTHON_H
#define YRT_PYTHON_H

#include <types.h>

#include "shared/frame.h"

/*
 * Parts of the code. The eval loop is one function. A native frame of it runs a chain of Python frames: from the one
 * for which it was called (or which stands for a generator) to the innermost one that this called without C in between.
 * Up to 3.10 the chain is one frame.
 */
enum python_part {
	PYTHON_EVAL,  /* in the loop, or on the way out */
	PYTHON_ENTER, /* at the beginning: nothing of the native frame is linked that could be followed; up to 3.10 also
	                 its end */
	PYTHON_LINK,  /* 3.13 on: the thread state leads to a frame of this native frame, which is not complete */
	PYTHON_JIT, /* code that a process made itself, perhaps 3.14's or 3.15's JIT compiler: called by the loop, runs
	               its frames */
	PYTHON_JIT_LATE,   /* no code when the maps were read; compiled code if the stack says so, a trampoline if it is
	                      one's code */
	PYTHON_GREENLET,   /* of greenlet's module: what it calls has a stack of its own, on which no Python frame is
	                      linked further */
	PYTHON_TRAMPOLINE, /* of -X perf, 3.12 on: calls the loop with one word on its stack, and keeps all registers */
	PYTHON_TRAMPOLINE_FP, /* the same, the word is the caller's frame pointer (3.14 on) */
	PYTHON_TORN,       /* 3.11, 3.12: the innermost frame's link is in the register of number part - PYTHON_TORN */
	PYTHON_CHAIN = 31, /* of no code: the walk was lost, and goes on by the thread state alone */
	PYTHON_INLINED =
	        32,       /* a copy of the function in another; its entry frame is at the place part - PYTHON_INLINED */
	PYTHON_BARE = 48, /* a bytecode's function: as leaf its return address is part - PYTHON_BARE words above the
	                     stack pointer */
};

/* How a native frame of the eval loop leads to its Python frames. */
enum python_linkage {
	PYTHON_ENTRY_FLAG,  /* 3.11: by the _PyCFrame in it to the first; the last one has is_entry */
	PYTHON_ENTRY_FRAME, /* 3.12: the same; the last one is followed by an entry frame in the native frame, without
	                       code */
	PYTHON_NO_CFRAME,   /* 3.13 on: the thread state or the next inner entry frame leads to the first; else the same
	                     */
	PYTHON_FRAME_OBJECT, /* up to 3.10: a PyFrameObject each, the thread state leads to the first */
};

/* How to get from a thread pointer to the word that points to the thread state: loads at these offsets, then slot. */
#define PYTHON_VIA_MAX 2

#define PYTHON_PLACES   16 /* of entry frames in native frames of functions that copies of the loop's are in */
#define PYTHON_GILS_MAX 16 /* interpreters whose locks are looked at */

/* From a task of asyncio to those that await it, 3.14 on. Offsets in bytes; all zero: not known, or not wanted. */
struct python_awaits {
	u64 coro_type; /* address of PyCoro_Type */
	u16 ts_task;   /* _PyThreadStateImpl.asyncio_running_task; 0: nothing here counts */
	u16 task_awaited_by, task_awaited_by_is_set, task_is_task, task_coro; /* TaskObj of _asyncio */
	u16 gen_frame, gen_state;          /* PyGenObject: gi_iframe, gi_frame_state */
	u16 f_stackpointer;                /* _PyInterpreterFrame */
	u16 set_used, set_table, set_mask; /* PySetObject */
	u8 awaiting;                       /* FRAME_SUSPENDED_YIELD_FROM */
	u8 awaited_below;                  /* how far below the stack pointer what is awaited lies then */
};

/*
 * What the walker needs of one process. Offsets in bytes; those of an interpreter frame and of a code object are below
 * PYTHON_OBJECT_BYTES.
 */
struct python_vm {
	u64 code_type;  /* address of PyCode_Type */
	u64 frame_type; /* address of PyFrame_Type, up to 3.10 */
	u64 key;        /* address of the TSS key of thread states (Py_tss_t); 0: unknown */
	s32 slot;       /* where its address lies then; with nvia 0: unknown, by the key */
	u16 via[PYTHON_VIA_MAX];
	u16 cframe_below;                /* how far below the CFA of the eval loop its _PyCFrame lies */
	u16 entry_below;                 /* the same of its entry frame */
	u16 ts_frame;                    /* PyThreadState.current_frame, frame, or cframe */
	u16 cf_frame;                    /* _PyCFrame.current_frame */
	u16 f_code, f_previous, f_instr; /* _PyInterpreterFrame; PyFrameObject with f_back and f_lasti */
	u16 f_entry;                     /* byte: is_entry, or owner */
	u16 ob_type;                     /* objects are read from here on */
	u16 co_firstlineno;              /* s32 */
	u16 co_filename, co_name;
	u16 co_code, co_consts, co_names; /* words of struct python_identity */
	u16 bytecode;                     /* begins here, from 3.11 on */
	u8 lasti_bytes;                   /* f_lasti counts bytes (2) or code units (1) */
	u8 nvia;
	u8 linkage;    /* enum python_linkage */
	u8 calls_late; /* what the loop calls may have unlinked its frames: its bytecodes are functions, or it is a
	                  debug build */
	u8 by_key; /* not slot, but as many words as the key's number says: Python makes a new key in a forked child */
	u8 f_gen;  /* PyFrameObject, up to 3.10 */
	u8 gen_outer; /* PyGenObject.gi_exc_state.previous_item; in 3.11 how far below its frame; 0: not looked at */
	u8 reserved;
	u16 ts_thread_id; /* PyThreadState.thread_id, 8 bytes */
	u16 ts_next;
	u16 interp_next, interp_threads; /* PyInterpreterState */
	u64 interpreters;                /* where the pointer to the first is */
	u64 current;    /* up to 3.10: where the pointer to the state that has the GIL is; 0: unknown */
	u64 jit_return; /* 3.15: where compiled code returns to; 0: by a stub of its own, between these: */
	u64 jit_start, jit_end;
	u64 jit_locals; /* 3.14: how far the loop's frame pointer is above its stack pointer */
	u64 gil;        /* address of the lock, where there is one for all interpreters; 0: each points to its own */
	u16 interp_gil; /* there */
	u16 wants_lock; /* --gil */
	u16 f_tlbc,
	        co_tlbc; /* free-threaded 3.14 on: tlbc_index (s32) of a frame, the array of a code object; 0: none */
	u64 resume_pc; /* a return address in the loop, where all is linked; the rule there: CFA = this register + this
	                  offset. 0: not known */
	u32 resume_reg, resume_off;
	struct python_awaits awaits;
	u16 inlined_below[PYTHON_PLACES]; /* as entry_below */
};
_Static_assert(sizeof(struct python_vm) == 224, "read as it is by the walker");

/*
 * What 3.14's stub of compiled code does behind its call (Tools/jit/shim.c, compiled): the first 8 bytes of pop rbx,
 * r12, r13, r14, r15, ret. From the return address on, the stack has these registers and then the return address to the
 * loop.
 */
#define PYTHON_JIT_STUB       0x415e415d415c415bull
#define PYTHON_JIT_STUB_WORDS 6
#define PYTHON_JIT_STUB_PUSH                                                                                           \
	0x5441554156415741ull     /* it begins with push r15, r14, r13, r12, rbx, at the start of a page */
#define PYTHON_JIT_STUB_BACK 0x17 /* where its call returns to */
#define PYTHON_JIT_STUB_END  0x21
#define PYTHON_JIT_WORDS     64 /* of the stack that are searched: compiled code keeps little there */

/*
 * The code of a trampoline from its call on (Python/asm_trampoline.S): call *%rcx; add $8, %rsp; ret, or call *%rcx;
 * pop %rbp; ret. It is at offset 8, or at 4 if the trampoline does not begin with endbr64.
 */
#define PYTHON_TRAMPOLINE_CALL 2 /* bytes of call *%rcx */
#define PYTHON_TRAMPOLINE_ADD  0x00c308c48348d1ffull
#define PYTHON_TRAMPOLINE_MASK 0x00ffffffffffffffull
#define PYTHON_TRAMPOLINE_POP  0xc35dd1ffu
#define PYTHON_ENDBR64         0xfa1e0ff3u

/*
 * Where glibc keeps the values of the first 32 keys of a thread, from its thread pointer: pairs of a sequence number
 * and a value (struct pthread's specific_1stblock). This is assumed for processes that have no thread state yet; in
 * others it is looked up (python_threads.h).
 */
#define PYTHON_TSS_BLOCK  0x310
#define PYTHON_TSS_KEYS   32
#define PYTHON_TSS_VALUES 128 /* keys of musl: PTHREAD_KEYS_MAX */

/* struct _gil_runtime_state: last_holder and behind it locked, from here on */
#define PYTHON_GIL_HOLDER 8

#define PYTHON_SHIM_UNITS      4 /* code of at most so many units, at line 0: a shim, as 3.13 puts one below __init__ */
#define PYTHON_OWNER_GENERATOR 1 /* _PyInterpreterFrame.owner */
#define PYTHON_OWNER_NONE      3 /* the same from 3.12: from here on it stands for no Python function */

/*
 * FRAME_SCRIPT of RUNTIME_PYTHON: addr is the code object, detail the position (number of the 2-byte code unit being
 * executed, PYTHON_NO_POS if not in the code) in the lower half, a cookie in the upper half that shows whether another
 * code object has taken the place of a freed one.
 */
#define PYTHON_NO_POS       0xffffffu
#define PYTHON_COOKIE_BITS  32
#define PYTHON_OBJECT_BYTES 128 /* read of an object at once */
#define PYTHON_FRAME_BYTES  88  /* of an interpreter frame */
#define PYTHON_CORO_BYTES   160 /* of a coroutine, with the beginning of its frame */
#define PYTHON_HEAD_MAX     24  /* ob_type lies no further */

/*
 * Words of a code object that never change in its life. code: its number of code units, up to 3.10 their bytes object.
 */
struct python_identity {
	u64 code, consts, names, filename, name, firstlineno;
};

/* The upper half of a sum of products with odd constants: the products do not wait for each other. */
static inline u32 python_cookie(const struct python_identity *id)
{
	u64 sum = id->code * 0x9e3779b97f4a7c15ull + id->consts * 0xbf58476d1ce4e5b9ull +
	          id->names * 0x94d049bb133111ebull;

	sum += id->filename * 0xd6e8feb86659fd93ull + id->name * 0xa0761d6478bd642full +
	       id->firstlineno * 0xe7037ed1a0b428dbull;
	return (u32)(sum >> 32);
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
 * The cursor of a walk. key: PyCode_Type. at: the next interpreter frame (PYTHON_AT_END: none). more[0]: where the
 * entry frame of the native frame must be (up to 3.10 1: the thread may have another state that it runs). more[1]: the
 * thread state that led to at. more[2]: the last frame that was looked at. more[3], more[4]: the first two of the walk.
 * more[5]: the last code object that was read. more[6]: what is pushed of it; 0: nothing, or it is not known. vm_state
 * is 1 while the frames of one native frame are being pushed.
 */
#define PYTHON_AT_END 1

/* Frames that stand for no code object: addr is one of these and detail 0. */
#define PYTHON_NO_CODE       8
#define PYTHON_COLLECTS      (4 * PYTHON_NO_CODE) /* the collector of cycles is at work */
#define PYTHON_SEVERAL_TASKS (3 * PYTHON_NO_CODE) /* the chain of tasks ends with one that several others await */

#endif

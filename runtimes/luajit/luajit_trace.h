/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace, copied from the target as a whole: machine code, snapshots, and the constants of its intermediate
 * representation (IR), which name the functions that were inlined into it.
 *
 * Facts are those of lj_jit.h, lj_ir.h, lj_snap.c and lj_asm.c, from beta3 of 2017 to 2025. A snapshot gives the stack
 * as the interpreter would have it: entries (slot << 24 | flags | IR reference) for changed slots, then the bytecode
 * position and the links of frames. It holds from its place in the machine code (mcofs) to that of the next one.
 */
#ifndef YRT_LUAJIT_TRACE_H
#define YRT_LUAJIT_TRACE_H

#include "luajit_image.h"
#include "binary/memory.h"

#define LUAJIT_MCODE_MAX (1u << 17) /* bytes of one trace's machine code; snapshots reach 64 KiB far */

/* A function, as a constant in the code of a trace. */
struct luajit_constant {
	u32 ref;
	u8 function;  /* enum luajit_function */
	bool closure; /* it is called, or passed on; else the trace returns to it */
	u64 addr;     /* prototype, code of C, or number of the builtin */
	u32 sizebc;   /* of a Lua function */
};

/* What a snapshot says, and from where in the code on it holds. */
struct luajit_snapshot {
	u32 place;  /* bytes from the start of the code */
	u32 map, n; /* entries: index of the first, how many */
	u32 end;    /* behind its position and links */
	u32 ref;    /* IR instruction from which on it holds */
};

struct luajit_trace {
	const struct luajit_layout *layout;
	u64 addr; /* GCtrace */
	u64 g;    /* global_State */
	u64 code; /* machine code */
	u32 code_size;
	u32 number;
	u64 startpt, startpc;
	bool loops; /* it ends with a jump back into itself */
	u32 nk;     /* the lowest constant; the highest is below LUAJIT_REF_BIAS */
	u32 nmap, nsnapshots, nconstants;
	u32 size; /* of all that was allocated */
	struct luajit_snapshot *snapshots;
	u32 *map;
	u64 *ir;                           /* from nk on */
	u8 *bytes;                         /* of the machine code */
	struct luajit_constant *constants; /* functions and prototypes */
};

#define LUAJIT_REF_BIAS   0x8000u
#define LUAJIT_SNAP_FRAME 0x10000u

/* The head of a GCtrace. */
struct luajit_trace_head {
	u64 code;
	u32 code_size, number;
};
bool luajit_trace_head(const struct luajit_layout *l, struct memory *mem, u64 addr, struct luajit_trace_head *ret);

/* NULL: unreadable, not a trace, or no memory. Free with luajit_trace_free(). */
struct luajit_trace *luajit_trace_read(const struct luajit_image *image, struct memory *mem, u64 g, u64 addr);
void luajit_trace_free(struct luajit_trace *t);

/* Can these four bytes be at pc of this trace's code? Targets of jumps are patched while a trace lives. */
bool luajit_trace_agrees(const struct luajit_trace *t, u64 pc, u32 cookie);
/*
 * The snapshot that is nearest to pc, before or behind it. *before: the program has not reached it yet. Between two
 * snapshots nothing shows where in the bytecode a trace is. A call is more likely followed by a snapshot than preceded
 * by one, because LuaJIT makes one after something that it cannot undo.
 */
const struct luajit_snapshot *luajit_trace_snapshot(const struct luajit_trace *t, u64 pc, bool call, bool *before);
/* Is it the snapshot from which the trace continues elsewhere: in the interpreter, or in another trace? */
bool luajit_trace_ends(const struct luajit_trace *t, const struct luajit_snapshot *s);
/* The entry of a snapshot for a slot; 0: none. */
u32 luajit_snapshot_entry(const struct luajit_trace *t, const struct luajit_snapshot *s, u32 slot);
/* The 64 bits of a constant (GC64). False: the reference is none. */
bool luajit_trace_constant(const struct luajit_trace *t, u32 ref, u64 *ret);
/* The function that the constant is; NULL: none. */
const struct luajit_constant *luajit_trace_function(const struct luajit_trace *t, u32 ref);
/* A Lua function that this trace mentions and in whose bytecode pc lies; NULL: none. */
const struct luajit_constant *luajit_trace_function_at(const struct luajit_trace *t, u64 pc);

/* --- luajit_expand.c --- */

/*
 * struct runtime_ops.expand: the frames LUAJIT_FAST (the VM), LUAJIT_MCODE and the base, as luajit.h has them. With
 * EXPAND_TRACES there is a frame LUAJIT_MCODE with FRAME_INLINED, for naming: addr is the prototype where the trace
 * starts, the position its number, the cookie the position of its start.
 */
struct luajit_traces;
u32 luajit_expand(struct luajit_traces *traces, struct memory *mem, const struct frame *frames, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten);

/* --- luajit_traces.c: those of a process --- */

struct luajit_traces *luajit_traces_create(const struct luajit_image *image); /* NULL: out of memory */
void luajit_traces_destroy(struct luajit_traces *traces);

/* Calls each() for each trace that the VM has now. */
void luajit_traces_each(const struct luajit_image *image, struct memory *mem, u64 g,
        void (*each)(void *ctx, const struct luajit_trace *t), void *ctx);

/* Is there a global_State of this build at g? */
bool luajit_traces_own(struct luajit_traces *traces, struct memory *mem, u64 g);
/* The trace whose code contains pc, or NULL. hint: its likely number. The result is valid until the next call. */
const struct luajit_trace *luajit_traces_find(
        struct luajit_traces *traces, struct memory *mem, u64 g, u64 pc, u32 hint, u32 cookie);

#endif

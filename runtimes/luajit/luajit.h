/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * LuaJIT, what the walker and user space share: the configuration of a VM image in the arena, the parts of its code,
 * and the meaning of a frame. Names of LuaJIT's own things are those of its sources (lj_obj.h, lj_frame.h,
 * vm_x64.dasc).
 */
#ifndef YRT_LUAJIT_H
#define YRT_LUAJIT_H

#include <types.h>

#include "shared/frame.h"

/*
 * Parts of the code. The place of the VM's C frame ("cframe"), and the Lua frames that belong to it, depend on the
 * instruction. "In a cframe" means that the standard frame of 80 bytes is complete and linked; its address is cf.
 */
enum luajit_part {
	LUAJIT_GLUE,      /* no cframe of its own (yet, or any more): prologues, leaf helpers; native rows only */
	LUAJIT_INTERP,    /* in a cframe; rsp = cf */
	LUAJIT_INTERP_8,  /* the same with one word pushed; rsp = cf - 8 */
	LUAJIT_INTERP_16, /* about to jump to a trace, r12 and r13 are saved; rsp = cf - 16 */
	LUAJIT_ENTER,     /* INTERP, but if rbx says "frame of C", that frame is not yet linked */
	LUAJIT_LEAVE, /* a frame of C is being returned from: rbx = base of its caller, which an outer cframe owns */
	LUAJIT_CALL,  /* INTERP right before rbx is stored as the link of the new frame at rdx */
	LUAJIT_EXIT,  /* exit from a trace: rsp says nothing, cf is found from the VM's state */
	LUAJIT_TRACE, /* machine code of traces */
	LUAJIT_GAP,   /* nothing was mapped here when we looked: code there now may be new traces */
};

/*
 * Layout of one build, as far as the walker needs it: offsets in bytes. "Reference" is a word of 8 bytes with GC64, of
 * 4 without.
 */
struct luajit_vm {
	/* lua_State: references but base and cframe, which are whole words */
	u16 l_glref, l_base, l_maxstack, l_stack, l_cframe;
	u16 l_gct; /* byte */
	u8 l_status;
	u8 l_exdata2; /* pointer; 0: this build has none */
	/* global_State, from its address; g2disp: of the dispatch table, which r14 holds in the interpreter */
	u16 g_cur_l;   /* reference; jit_base follows it */
	u16 g_vmstate; /* s32 */
	u16 g2disp;
	/* GCfunc */
	u8 fn_ffid; /* byte */
	u8 fn_pc;   /* reference */
	u16 fn_f;
	u16 proto_size;   /* sizeof(GCproto): bytecode follows it */
	u16 proto_sizebc; /* u32 */
	/* cframe, from its address */
	u16 cf_nres;     /* s32 */
	u16 cf_l, cf_pc; /* references */
	u16 cf_prev;
	s16 cf_r13;    /* where BC_JLOOP saves r13 (r12: at 0) */
	u8 bc_patched; /* first opcode of those that the JIT rewrites in place: of them only operand A is fixed */
	u8 gc64;
	/* where a walk that was lost goes on (return addresses): in the interpreter, in the handler of trace exits; 0:
	 * nowhere */
	u64 resume_interp, resume_exit;
	u64 only; /* global_State of the only VM that was found; 0: there were more, or none */
};
_Static_assert(sizeof(struct luajit_vm) == 64, "read as it is by the walker");

/*
 * FRAME_SCRIPT of RUNTIME_LUAJIT. detail, from the low end:
 *
 *	0-23	position in the bytecode, LUAJIT_NO_POS if unknown; a function's header is 0
 *	24-25	enum luajit_function
 *	26	running as machine code
 *	32-63	cookie
 *
 * Lua function: addr is its GCproto, the cookie is the instruction at the position (at 0 if that is unknown; only
 * operand A if the JIT may rewrite it), so that an object which took the place of a freed one is noticed, without a
 * further read. Function in C: addr is its code. Builtin ("fast") function: addr is its number, ffid, or
 * LUAJIT_WORK + ~vmstate for the VM's own work.
 *
 * Trace: addr is the program counter in its machine code, the position is the number of the trace that the VM says it
 * runs (a hint), the cookie the first bytes of code there. The frame before it (LUAJIT_FAST with LUAJIT_JIT) holds the
 * address of the global_State, the next one is the function at the trace's base. Expansion replaces the three by the
 * functions that the trace has inlined and the base.
 */
enum luajit_function { LUAJIT_LUA, LUAJIT_C, LUAJIT_FAST, LUAJIT_MCODE };

#define LUAJIT_WORK 256

/* global_State.vmstate is the number of the running trace, or the complement of one of these (lj_obj.h). */
enum luajit_vmstate {
	LUAJIT_VMST_INTERP,
	LUAJIT_VMST_C,
	LUAJIT_VMST_GC,
	LUAJIT_VMST_EXIT,
	LUAJIT_VMST_RECORD,
	LUAJIT_VMST_OPT,
	LUAJIT_VMST_ASM,
	LUAJIT_VMST_MAX
};

#define LUAJIT_NO_POS        0xffffffu
#define LUAJIT_FUNCTION_BITS 24
#define LUAJIT_JIT           (1ull << 26)
#define LUAJIT_COOKIE_BITS   32

static inline u64 luajit_detail(enum luajit_function function, u32 pos, u32 cookie)
{
	return (u64)cookie << LUAJIT_COOKIE_BITS | (u64)function << LUAJIT_FUNCTION_BITS | pos;
}

static inline u32 luajit_pos(const struct frame *f)
{
	return (u32)f->detail & LUAJIT_NO_POS;
}

static inline enum luajit_function luajit_function(const struct frame *f)
{
	return (enum luajit_function)(f->detail >> LUAJIT_FUNCTION_BITS & 3);
}

/*
 * What a cookie keeps of an instruction: operand A is byte 1, the opcode byte 0. Instructions that the JIT rewrites in
 * place keep only their A, and ITERC, ITERN, RETM to RET1 and LOOP nothing, because a JLOOP with an A of its own
 * replaces them (lj_trace.c, trace_stop).
 */
#define LUAJIT_LOOPS 0x700f3ull /* from bc_patched on: ITERC, ITERN, RETM, RET, RET0, RET1, LOOP, ILOOP, JLOOP */

static inline u32 luajit_cookie(u8 bc_patched, u32 instruction)
{
	u8 op = (u8)instruction - bc_patched;

	if ((u8)instruction < bc_patched)
		return instruction;
	return LUAJIT_LOOPS >> (op & 63) & 1 ? 0 : instruction & 0xff00;
}

/* --- between the two halves of the walker: luajit_walk.c finds where to start, luajit_frames_walk.c goes down --- */

/*
 * The cursor of a lua_State: key is its address, at that of the link slot (base - 8) of the frame that was pushed last,
 * more[0] the cframe that owns it, more[1] the bits below. vm_state of the walk is the number of the cursor in use + 1
 * while the frames of one native frame are being pushed, else 0.
 */
#define LUAJIT_AT_BOTTOM 1            /* at: all frames were seen */
#define LUAJIT_PENDING   (1ull << 60) /* the frame at `at` is not pushed yet; its pc is in the low bits, 0 if unknown */
#define LUAJIT_ON_TRACE  (1ull << 61) /* and it runs as machine code */
#define LUAJIT_PC_MASK   ((1ull << 48) - 1)

#define LUAJIT_CFRAME_MASK (~3ull) /* the low bits of a cframe's address say: may yield, being unwound */

/* Links of frames, by their low bits: an address of bytecode, or the distance to the frame below in bytes. */
enum luajit_link { LUAJIT_LINK_LUA, LUAJIT_LINK_C, LUAJIT_LINK_CONT, LUAJIT_LINK_VARG, LUAJIT_LINK_CP = 5 };
#define LUAJIT_DELTA_MIN 8         /* function and link */
#define LUAJIT_DELTA_MAX (1 << 20) /* LUAI_MAXSTACK is 65,500 slots */

/* What stands at an address that may be a base. */
enum luajit_standing { LUAJIT_STANDS_UNSURE, LUAJIT_STANDS, LUAJIT_STANDS_AT_PC, LUAJIT_STANDS_NO_MORE };

#define LUAJIT_FRAMES_DONE (-1) /* besides stop reasons: all frames of the cframe were pushed */

/* A function that the verifier checks by itself, called from the other file. */
#define LUAJIT_SHARED WALK_STEP __attribute__((noinline))

struct walk;
int luajit_accepts(struct walk *w, u64 base, u64 pc);
int luajit_returns(struct walk *w, u64 base, u64 pc);
int luajit_is_operand(struct walk *w, u64 base, u64 pc, u64 lbase);
int luajit_stands(struct walk *w, u64 base);
int luajit_own(struct walk *w, u64 cf);
int luajit_frames(struct walk *w, u64 cf);
int luajit_below(struct walk *w, u64 cf, u64 link, u32 running);
/*
 * At the bottom of a coroutine, in cframe cf: goes to the one that waits for it. LUAJIT_FRAMES_DONE: none is known.
 * luajit_host_walk.c.
 */
int luajit_waiting(struct walk *w, u64 cf);
/* Leaves to later walks of this thread which VM runs on it: luajit_resume_walk.c. */
int luajit_note(struct walk *w, u64 g, u64 cf);

#endif

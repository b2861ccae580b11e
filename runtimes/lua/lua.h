/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * PUC-Lua, what the walker and user space share: the configuration of one build in the arena, the parts of its code,
 * and the meaning of a frame. Names are those of Lua's sources (lstate.h, lobject.h, lvm.c).
 *
 * One native frame of luaV_execute() runs a chain of Lua functions: those that it called itself, down to the one that
 * it was entered with. Each function, in Lua or C, has a CallInfo, linked to its caller's.
 */
#ifndef YRT_LUA_H
#define YRT_LUA_H

#include <types.h>

#include "shared/frame.h"

enum lua_part {
	LUA_EXECUTE,      /* luaV_execute() from its entry on */
	LUA_EXECUTE_COLD, /* other parts of it */
	LUA_CALLS,        /* functions that call luaV_execute(), as luaD_call() */
	LUA_GLUE,         /* how C enters Lua, between the API and those: luaD_call(), luaD_pcall(), f_call() */
	LUA_RESUME,       /* lua_resume(): whatever the coroutine's CallInfos still hold was suspended below it */
};

#define LUA_OBJECT 120 /* bytes that the walker reads of a lua_State or a Proto: all that it uses must lie there */

#define LUA_ENDS   4 /* places where luaV_execute() returns; more are left out */
#define LUA_SPILLS 6 /* likewise: slots to which it stores l_reg, to reuse it or because calls do not preserve it */

/* Offsets in bytes. member sizes are those of 64-bit builds: pointers of 8, int of 4. */
struct lua_vm {
	u32 lua_mask, lua_bits;     /* CallInfo.callstatus of a Lua function */
	u32 fresh_mask, fresh_bits; /* of one that luaV_execute() was entered with */
	u32 tail_mask;
	u16 version; /* 501 … 505 */
	u16 l_from; /* bytes of luaV_execute() after which its first argument, the lua_State, is in l_reg or its slot */
	s16 l_slot; /* of the stack, from what l_reg holds, if l_in_slot */
	u16 returns; /* 5.1: bytes of luaV_execute() up to within its call of luaD_poscall(); 0: not known */
	u16 begun;   /* bytes of luaV_execute() that only run when it is entered: up to its first jump or label */
	struct {
		u16 from, to; /* of its code that restores its caller's registers and returns */
	} end[LUA_ENDS];
	s16 spill[LUA_SPILLS]; /* from what spill_reg holds */
	u16 copies; /* registers that it copies l_reg to, a bit for each DWARF number: callee-saved ones, rdi */
	u8 nspills, spill_reg;
	u8 pc_reg;  /* 5.1: DWARF number of what has the position; 0: not known */
	u8 pc_kept; /* calls preserve it */
	u8 l_in_slot;
	u8 l_reg;          /* DWARF number */
	u8 l_reused;       /* luaV_execute() also keeps other values there; shown by inspect, not used otherwise */
	u8 pc_in_register; /* CallInfo's savedpc of the running function is older than what luaV_execute() has in a
	                      register */
	u8 l_tt, l_ci, l_stack, l_stack_last;
	u8 l_g;                  /* a pointer; 0: not known */
	u8 l_base_ci, l_savedpc; /* 5.1 only: pointers */
	u8 l_first_ci;           /* 5.2 on: the CallInfo of C that the list ends with */
	u8 ci_func, ci_previous, ci_savedpc, ci_status, ci_status_size, ci_size;
	u8 cl_p, cl_f, cl_is_c;             /* cl_is_c: 5.1 only */
	u8 ci_base, ci_top, p_maxstacksize; /* 5.1 only; 0: not known */
	u8 p_code, p_sizecode, p_linedefined, p_lastlinedefined;
	u8 op_mask, op_call, op_tailcall; /* 5.1, 5.2 */
};
_Static_assert(sizeof(struct lua_vm) == 96, "read as it is by the walker");

/*
 * FRAME_SCRIPT of RUNTIME_LUA. detail, from the low end:
 *
 *	0-23	position in the bytecode, LUA_NO_POS if unknown
 *	24	a function in C: addr is its code; else addr is its Proto
 *	25	it was called by a tail call: its caller is not on the stack
 *	26	no function, but "(gc)"; addr is 0
 *	27	no function, but the global_State of the functions behind it, once for each lua_State; addr is where it
 *		is, the cookie is the configuration's offset in the arena
 *	32-63	cookie: lua_cookie() of the Proto, so that an object which took its place is noticed
 */
#define LUA_NO_POS      0xffffffu
#define LUA_C_FUNCTION  (1ull << 24)
#define LUA_TAIL_CALLED (1ull << 25)
#define LUA_COLLECTS    (1ull << 26)
#define LUA_STATE       (1ull << 27)
#define LUA_COOKIE_BITS 32

static inline u32 lua_cookie(u64 code, u32 sizecode, u32 linedefined, u32 lastlinedefined)
{
	u64 hash = (code ^ (u64)sizecode << 40) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 29 ^ (u64)linedefined << 32 ^ lastlinedefined) * 0x9e3779b97f4a7c15ULL;
	return (u32)(hash >> 32);
}

#endif

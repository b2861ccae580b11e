/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the two files of the walker share: which of a lua_State's functions a native frame of luaV_execute() runs.
 * During luaD_precall(), luaD_poscall() or the end of an error, the CallInfo on top may be half set up, left from an
 * earlier call, or belong to functions that are gone.
 */
#ifndef YRT_LUA_WALK_H
#define YRT_LUA_WALK_H

#include "walk.h"
#include "lua.h"

#define LUA_SHARED WALK_STEP __attribute__((noinline))

#define LUA_TTHREAD          8
#define LUA_TPROTO           9  /* of 5.1 */
#define LUA_CALLINFO         72 /* bytes, as LUA_CLOSURE: at most; lua_call_bytes(), lua_closure_bytes() */
#define LUA_CLOSURE          40
#define LUA_SLOT             16   /* of the Lua stack: a TValue */
#define LUA_TYPE_BITS        0x3f /* of TValue.tt: without BIT_ISCOLLECTABLE (5.2 on) */
#define LUA_WINDOW           1024 /* bytes of the Lua stack, or of CallInfos, that are read at once */
#define LUA_FUNCTIONS_A_STEP 16
#define LUA_LOOK             1024 /* twice the CallInfos that lua_settle() looks at */
#define LUA_LIGHT_C          22   /* LUA_VLCF: a C function without upvalues is no object (5.2 on) */
#define LUA_FUNCTION         6
#define LUA_OFFSETS          (1u << 26) /* less is no pointer, but may be an offset in the stack */
#define LUA_STACK_MOST       (1u << 25) /* bytes: LUAI_MAXSTACK and what is above it */
#define LUA_VM_KEY           (1ULL << 63)
/*
 * Of the build's cursor, once settled. more[3]: the CallInfo that luaV_execute() runs, until it is pushed, if others
 * are in front of it. more[2]: how many functions in Lua this luaV_execute() is known to run; the first one is not its.
 */
#define LUA_NOT_ITS (1ULL << 32)

/*
 * Of the build's cursor. LUA_UNENTERED: a function that calls luaV_execute() has not done so yet, so the CallInfo on
 * top may have no native frame. LUA_ENTERED: in luaV_execute(), not settled yet. LUA_AT_TOP,
 * LUA_BELOW: in it, of whose lua_State nothing was pushed yet, or something was. LUA_LEFT: luaV_execute() was the last
 * frame.
 */
enum { LUA_IDLE, LUA_UNENTERED, LUA_LEFT, LUA_ENTERED, LUA_AT_TOP, LUA_BELOW };
#define LUA_LAST 1 /* instead of a CallInfo: there are no more */
/* Of lua_settle(). */
enum { LUA_SETTLED, LUA_MORE, LUA_RETURNED };
enum { LUA_PUSHED = STOP_NONE, LUA_DONE = STOP_MAX, LUA_BOTTOM, LUA_KEPT, LUA_NOT_BEGUN };

/* Of lua_look(). */
enum { LUA_IN_C, LUA_IN_LUA, LUA_RUNS };
/*
 * Of lua_push_lua(): luaV_execute() runs the function now; it may not have done so yet; it was tail called; it was
 * entered with it; its stack is being moved, so its position has to lie in its code.
 */
enum { LUA_RUNNING = 1, LUA_MAY_BEGIN = 2, LUA_TAIL = 4, LUA_FRESH = 8, LUA_DOUBTED = 16 };

/* A CallInfo and the function at func, with the result of the one before: recursion needs it again. */
struct lua_call {
	u64 func, pc, closure;
	u64 follows; /* 5.1: a position behind a call */
	u64 known;   /* the closure of the function in Lua that was pushed last; 0: none was */
	u64 proto, code;
	u32 size, cookie; /* of that one */
	u32 status;
	u16 slots; /* 5.1: from its base to its top */
	u8 moved;  /* func leads out of the stack, which is being moved */
	u8 lasts;  /* it is a caller, of which a later walk may find the same */
};

/*
 * No more is read than an object has: allocators with a class of exactly its size (jemalloc) put it at a page's end,
 * and the next page may be absent.
 */
static inline u32 lua_call_bytes(const struct lua_vm *vm)
{
	return vm->ci_size < LUA_CALLINFO ? vm->ci_size : LUA_CALLINFO;
}

static inline u32 lua_closure_bytes(const struct lua_vm *vm)
{
	return vm->cl_is_c ? LUA_CLOSURE : LUA_CLOSURE - 8; /* lobject.h: from 5.2 on it has no env */
}

static inline bool lua_read_info(struct walk *w, const struct lua_vm *vm, u64 ci)
{
	return walk_read(w, w->scratch, lua_call_bytes(vm), ci);
}

static inline u64 lua_word(const struct walk *w, u32 at)
{
	return w->scratch[at >> 3 & (WALK_SCRATCH_WORDS - 1)];
}

static inline u32 lua_int(const struct walk *w, u32 at)
{
	return (u32)(lua_word(w, at) >> (at & 4) * 8);
}

static inline u32 lua_byte(const struct walk *w, u32 at)
{
	return lua_word(w, at) >> (at & 7) * 8 & 0xff;
}

static inline u64 lua_register(const struct walk *w, u32 reg)
{
	WALK_BARRIER(reg);
	return reg < ARCH_NREGS ? w->reg[reg] : 0;
}

static inline struct walk_cursor *lua_cursor(struct walk *w, u32 i)
{
	WALK_BARRIER(i);
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

/* luaV_execute(), the leaf, has not reached its first jump: registers are still those of its caller. */
static inline bool lua_is_entering(const struct walk *w, const struct lua_vm *vm)
{
	return w->leaf && w->region.part == LUA_EXECUTE && walk_pc(w) - w->region.start < vm->begun;
}

/* It restores what its caller had in registers. */
static inline bool lua_is_leaving(const struct walk *w, const struct lua_vm *vm)
{
	u64 offset = walk_pc(w) - w->region.start;

	for (u32 i = 0; i < LUA_ENDS && w->leaf && w->region.part == LUA_EXECUTE; i++)
		if (offset >= vm->end[i].from && offset < vm->end[i].to)
			return true;
	return false;
}

static inline u32 lua_status(const struct walk *w, const struct lua_vm *vm)
{
	u64 word = lua_word(w, vm->ci_status) >> (vm->ci_status & 7) * 8;

	return vm->ci_status_size == 1 ? (u8)word : vm->ci_status_size == 2 ? (u16)word : (u32)word;
}

static const u8 lua_saved[] = {DWREG_RBX, DWREG_RBP, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15};

/*
 * The position that luaV_execute() has in a register: the one that is known to hold it, else the highest callee-saved
 * register that points into the bytecode.
 */
WALK_GLOBAL u64 lua_register_pc(struct walk *w, const struct lua_vm *vm, u64 code, u64 end)
{
	u64 best = 0;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	if (vm->pc_reg && (vm->pc_kept || w->leaf)) {
		best = walk_has(w, vm->pc_reg) ? lua_register(w, vm->pc_reg) : 0;
		best = best > code && best <= end && !(best & 3) ? best : 0;
		if (best || vm->pc_kept)
			return best;
	}

	for (u32 i = 0; i < sizeof(lua_saved); i++) {
		u64 value = walk_has(w, lua_saved[i]) ? w->reg[lua_saved[i]] : 0;

		if (value > code && value <= end && !(value & 3) && value > best)
			best = value;
	}
	return best;
}

/*
 * luaV_execute() has called the current function. Is the CallInfo on top that of its own function, or of one in C that
 * it called? Others may be above it and are skipped: luaD_precall() sets one up that still describes an earlier call,
 * and an error leaves some behind. Looks at one CallInfo; LUA_MORE: look at the next one too. LUA_RETURNED: all
 * functions of this luaV_execute() have returned.
 */
int lua_settle(struct walk *w, u32 own);

/*
 * The same where luaV_execute() is the leaf. LUA_RETURNED: the function that it was entered with has returned, and the
 * one on top is its caller's, run by another luaV_execute(). From 5.2 on a function on top may not have begun yet (it
 * is tail called).
 */
int lua_settle_leaf(struct walk *w, u32 own);

/*
 * The same for 5.1, which has no CallInfo in a register: by the call that luaV_execute() is at, and by the position in
 * lua_State. luaD_precall() sets that to the beginning of a function for which it has made a CallInfo; for one that has
 * not begun it is not within the function. LUA_MORE: this does not decide, but lua_settle() does.
 */
int lua_settle_old(struct walk *w, u32 own);

/* From 5.2 on luaV_execute() has its CallInfo in a variable. */
int lua_is_in_register(struct walk *w, u64 ci);

/* 5.1, 5.2: luaV_execute() was not entered anew where the caller, in Lua, is at a call. */
int lua_at_call(struct walk *w, u64 pc);

/*
 * 5.2, 5.3, where luaV_execute() runs the function at ci, whose bytecode, at callee, has not begun: is it in the middle
 * of calling it? fresh: of its status, it was entered with it; 5.2 marks others only some instructions later, so the
 * caller's position says it. Overwrites scratch.
 */
int lua_is_being_called(struct walk *w, u64 ci, u64 callee, u32 fresh);

#endif

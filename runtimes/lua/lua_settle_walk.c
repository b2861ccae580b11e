/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "lua_walk.h"

/* A read that must not fail: without it the order of frames is in doubt, and the walk is not complete. */
static inline __attribute__((always_inline)) bool lua_must_read(struct walk *w, void *ret, u32 size, u64 addr)
{
	if (walk_read(w, ret, size, addr))
		return true;
	w->lost = w->lost ? w->lost : STOP_VM_ABSENT;
	return false;
}

static inline __attribute__((always_inline)) bool lua_must_read_info(struct walk *w, const struct lua_vm *vm, u64 ci)
{
	return lua_must_read(w, w->scratch, lua_call_bytes(vm), ci);
}

LUA_SHARED int lua_is_in_register(struct walk *w, u64 ci)
{
	WALK_CHECK(w);
	for (u32 i = 0; i < sizeof(lua_saved); i++)
		if (walk_has(w, lua_saved[i]) && w->reg[lua_saved[i]] == ci)
			return true;
	return false;
}

/* Inlined: no call frame of BPF is left for it where lua_is_being_called() asks. */
static inline __attribute__((always_inline)) bool lua_is_behind_call(struct walk *w, const struct lua_vm *vm, u64 pc)
{
	u32 instruction;

	if (!pc || !lua_must_read(w, &instruction, sizeof(instruction), pc - 4))
		return false;
	instruction &= vm->op_mask;
	return instruction == vm->op_call || instruction == vm->op_tailcall;
}

LUA_SHARED int lua_at_call(struct walk *w, u64 pc)
{
	const struct lua_vm *vm;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	return vm && lua_is_behind_call(w, vm, pc);
}

/* 5.1: what stands at func, and whether the registers point into its bytecode. Leaves the Proto of one in Lua in
 * scratch. */
WALK_GLOBAL int lua_looks_run(struct walk *w, u64 func)
{
	const struct lua_vm *vm;
	u64 code;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_read(w, w->scratch, LUA_SLOT, func) || (u32)w->scratch[1] != LUA_FUNCTION ||
	        !walk_read(w, w->scratch, LUA_CLOSURE, w->scratch[0]) || lua_byte(w, vm->cl_is_c))
		return LUA_IN_C;
	if (!walk_read(w, w->scratch, LUA_OBJECT, lua_word(w, vm->cl_p)))
		return LUA_IN_LUA;
	code = lua_word(w, vm->p_code);
	return lua_register_pc(w, vm, code, code + (u64)lua_int(w, vm->p_sizecode) * 4) ? LUA_RUNS : LUA_IN_LUA;
}

/* Does a position follow an instruction of the Proto in scratch? */
static inline bool lua_is_in_code(const struct walk *w, const struct lua_vm *vm, u64 pc)
{
	return pc - lua_word(w, vm->p_code) - 1 < (u64)lua_int(w, vm->p_sizecode) * 4;
}

/*
 * What the registers of luaV_execute() say of the CallInfo in scratch, which stands at ci. One of a function in C is
 * not what runs here: a register that luaV_execute() has not used yet can still hold luaD_pcall()'s copy of L->ci.
 */
static inline int lua_look(struct walk *w, const struct lua_vm *vm, u64 ci)
{
	if (!vm->ci_previous)
		return lua_looks_run(w, lua_word(w, vm->ci_func));
	if ((lua_status(w, vm) & vm->lua_mask) != vm->lua_bits)
		return LUA_IN_C;
	return lua_is_in_register(w, ci) ? LUA_RUNS : LUA_IN_LUA;
}

/*
 * From 5.2 on: has the function that luaV_execute() was entered with just returned, so that the CallInfo at ci, on top,
 * is its caller's? The registers still hold that of the function, which stands behind.
 */
WALK_GLOBAL int lua_has_returned(struct walk *w, u64 ci)
{
	const struct lua_vm *vm;
	u64 next;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->ci_previous || !lua_must_read_info(w, vm, ci))
		return false;
	next = lua_word(w, vm->ci_previous + 8u);
	return next && lua_is_in_register(w, next) && lua_must_read_info(w, vm, next) &&
	       (lua_status(w, vm) & vm->fresh_mask) == vm->fresh_bits;
}

/*
 * 5.1, at the call of luaD_poscall(), which takes the CallInfo of the function that returns away, and some instructions
 * later has the position of its caller in lua_State: was that one, at func, run by another luaV_execute()?
 */
static inline int lua_settle_return(struct walk *w, u32 own, u64 func, u64 saved, u64 newer)
{
	const struct lua_vm *vm = walk_arena(w, w->region.vm);
	bool in_c = lua_looks_run(w, func) == LUA_IN_C;

	lua_cursor(w, own)->more[2] = 0;
	if (!vm || (saved != newer && !in_c && lua_is_in_code(w, vm, newer)))
		return LUA_SETTLED;
	if (in_c || !lua_at_call(w, saved))
		return LUA_RETURNED;
	lua_cursor(w, own)->more[1] = LUA_BELOW;
	return LUA_SETTLED;
}

LUA_SHARED int lua_settle_old(struct walk *w, u32 own)
{
	struct walk_cursor *c, *thread;
	const struct lua_vm *vm;
	u64 newer, saved, func;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return LUA_SETTLED;
	c = lua_cursor(w, own);
	thread = lua_cursor(w, (u32)c->more[0]);
	if (!lua_must_read(w, &newer, sizeof(newer), c->at + vm->l_savedpc) || !lua_must_read_info(w, vm, thread->at))
		return LUA_SETTLED;
	saved = lua_word(w, vm->ci_savedpc);
	func = lua_word(w, vm->ci_func);
	if (vm->returns && walk_pc(w) - w->region.start == vm->returns && w->region.part == LUA_EXECUTE)
		return lua_settle_return(w, own, func, saved, newer);
	if (c->more[2] == LUA_NOT_ITS && lua_looks_run(w, func) != LUA_IN_C && !lua_is_in_code(w, vm, newer)) {
		c = lua_cursor(w, own);
		c->more[1] = LUA_BELOW;
		c->more[2] = 0;
		lua_cursor(w, (u32)c->more[0])->at -= vm->ci_size;
		return LUA_SETTLED;
	}
	if (vm->pc_kept)
		return LUA_MORE;
	lua_cursor(w, own)->more[2] = 0;
	return LUA_SETTLED;
}

/*
 * 5.1, where the function on top has not begun: is luaV_execute() in the middle of its call? Its position is still the
 * one that luaD_precall() has stored for the caller, or that is a tail call, after which no caller is left, or
 * OP_TAILCALL has put the beginning of the callee, whose bytecode is at callee, there. Callers in C and ones that run a
 * metamethod have entered luaV_execute() anew.
 */
static inline bool lua_is_called_now(struct walk *w, const struct lua_vm *vm, u64 caller, u64 callee)
{
	u64 saved, func;
	u32 call;

	if (!lua_must_read_info(w, vm, caller))
		return false;
	saved = lua_word(w, vm->ci_savedpc);
	func = lua_word(w, vm->ci_func);
	if (saved == callee)
		return true;
	if (!lua_at_call(w, saved) || lua_looks_run(w, func) == LUA_IN_C)
		return false;
	return (w->leaf && saved == lua_register(w, vm->pc_reg)) ||
	       (walk_read(w, &call, sizeof(call), saved - 4) && (call & vm->op_mask) == vm->op_tailcall);
}

/*
 * 5.1: the position in lua_State says whether the function on top has begun. While OP_TAILCALL moves arguments over
 * functions it is in the code of none. Where it is that of a caller that runs a metamethod, this function has returned.
 */
WALK_GLOBAL int lua_settle_top(struct walk *w, u32 own, u64 ci)
{
	const struct lua_vm *vm;
	u64 newer, saved, code;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->pc_reg || (w->leaf && !walk_has(w, vm->pc_reg)) ||
	        !lua_must_read(w, &newer, sizeof(newer), lua_cursor(w, own)->at + vm->l_savedpc) ||
	        !lua_must_read_info(w, vm, ci))
		return LUA_SETTLED;
	saved = lua_word(w, vm->ci_savedpc);
	if (lua_looks_run(w, lua_word(w, vm->ci_func)) != LUA_IN_LUA)
		return LUA_SETTLED;
	code = lua_word(w, vm->p_code);
	if (w->leaf && vm->pc_kept && saved == newer && saved != code && !lua_at_call(w, saved))
		return LUA_RETURNED;
	if (newer == code ? lua_is_called_now(w, vm, ci - vm->ci_size, code) : !lua_is_in_code(w, vm, newer))
		lua_cursor(w, own)->more[3] = ci - vm->ci_size;
	return LUA_SETTLED;
}

/*
 * luaD_precall() puts a CallInfo on top before it fills it in. Does this one hold something else than a function above
 * its caller's? What lies out of the stack may be one that is not corrected yet while the stack moves.
 */
static inline bool lua_is_unfilled(struct walk *w, u32 i, u64 func, u64 previous)
{
	const struct walk_cursor *thread = lua_cursor(w, i);
	const struct lua_vm *vm = walk_arena(w, w->region.vm);
	u64 stack = thread->more[0], size = thread->more[1] - stack, caller;

	return vm && func - stack < size && walk_read(w, &caller, sizeof(caller), previous + vm->ci_func) &&
	       caller - stack < size && func <= caller;
}

LUA_SHARED int lua_settle(struct walk *w, u32 own)
{
	struct walk_cursor *c, *thread;
	const struct lua_vm *vm;
	u64 ci, func;
	int look;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return LUA_SETTLED;
	c = lua_cursor(w, own);
	thread = lua_cursor(w, (u32)c->more[0]);
	ci = c->more[3] ? c->more[3] : thread->at;
	if (!ci || ci == LUA_LAST || ci == thread->more[2] || c->more[4] >= LUA_LOOK ||
	        !lua_must_read_info(w, vm, ci)) {
		c->more[3] = 0;
		if (!vm->ci_previous)
			return lua_settle_top(w, own, thread->at);
		return lua_has_returned(w, thread->at) ? LUA_RETURNED : LUA_SETTLED;
	}
	c->more[3] = vm->ci_previous ? lua_word(w, vm->ci_previous) : ci - vm->ci_size;
	func = lua_word(w, vm->ci_func);
	look = lua_look(w, vm, ci);
	c = lua_cursor(w, own);
	if (!c->more[4] && (look == LUA_IN_C || !vm->ci_previous) &&
	        lua_is_unfilled(w, (u32)c->more[0], func, c->more[3])) {
		lua_cursor(w, (u32)c->more[0])->at = c->more[3];
		c->more[4] = 2;
		c->more[3] = 0;
		return LUA_MORE;
	}
	if (look != LUA_RUNS) {
		c->more[4] = (c->more[4] + 2) | (look == LUA_IN_LUA);
		if (look == LUA_IN_LUA)
			lua_cursor(w, (u32)c->more[0])->more[3] = c->more[3];
		c->more[3] = c->more[3] ? c->more[3] : LUA_LAST;
		return LUA_MORE;
	}
	c->more[2] = 0;
	c->more[3] = ci;
	if (c->more[4] & 1) { /* those in Lua, and what is in front of them, were not called from here */
		c->more[1] = LUA_BELOW;
		thread = lua_cursor(w, (u32)c->more[0]);
		thread->at = thread->more[3];
	}
	return LUA_SETTLED;
}

LUA_SHARED int lua_settle_leaf(struct walk *w, u32 own)
{
	const struct lua_vm *vm;
	u64 ci, caller;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || lua_is_entering(w, vm))
		return LUA_SETTLED;
	ci = lua_cursor(w, (u32)lua_cursor(w, own)->more[0])->at;
	if (!vm->ci_previous)
		return lua_settle_top(w, own, ci);
	if (lua_is_in_register(w, ci) || !lua_must_read_info(w, vm, ci))
		return LUA_SETTLED;
	caller = lua_word(w, vm->ci_previous);
	if (caller && lua_is_in_register(w, caller)) {
		lua_cursor(w, own)->more[3] = caller;
		return LUA_SETTLED;
	}
	return lua_has_returned(w, ci) ? LUA_RETURNED : LUA_SETTLED;
}

LUA_SHARED int lua_is_being_called(struct walk *w, u64 ci, u64 callee, u32 fresh)
{
	const struct lua_vm *vm;
	u64 saved;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !fresh)
		return true;
	if (vm->version != 502 || !lua_read_info(w, vm, ci) || !lua_read_info(w, vm, lua_word(w, vm->ci_previous)))
		return false;
	saved = lua_word(w, vm->ci_savedpc);
	return (lua_status(w, vm) & vm->lua_mask) == vm->lua_bits &&
	       (saved == callee || lua_is_behind_call(w, vm, saved));
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which lua_State a native frame of luaV_execute() runs: its registers, or slots of its frame, hold it. */
#ifndef YRT_LUA_ENTER_WALK_H
#define YRT_LUA_ENTER_WALK_H

#include "lua_walk.h"

/* The lua_State that the luaV_execute() of this frame runs; 0: its registers do not say. */
static inline u64 lua_running(struct walk *w, const struct lua_vm *vm)
{
	u64 offset = walk_pc(w) - w->region.start, thread;
	u32 reg = vm->l_reg;

	if (w->region.part == LUA_EXECUTE && w->leaf && offset < vm->l_from)
		reg = DWREG_RDI;
	else if (vm->l_in_slot)
		return walk_has(w, reg) && walk_stack(w, lua_register(w, reg) + (u64)(s64)vm->l_slot, &thread) ? thread
		                                                                                               : 0;
	return walk_has(w, reg) ? lua_register(w, reg) : 0;
}

/* In the loops of OP_CLOSURE and OP_VARARG gcc uses the register of the lua_State for something else. */
static inline u64 lua_spilled(struct walk *w, const struct lua_vm *vm, u32 i)
{
	u32 reg = vm->spill_reg;
	u64 thread;

	return walk_has(w, reg) && walk_stack(w, lua_register(w, reg) + (u64)(s64)vm->spill[i], &thread) ? thread : 0;
}

/*
 * The end of the stack of the lua_State in w->scratch; 0: w->scratch holds no lua_State. luaD_reallocstack() of 5.2 and
 * 5.3 clears a new stack before it sets stack_last. Until then stack_last and the first CallInfo refer to the old one.
 */
static inline u64 lua_stack_end(struct walk *w, const struct lua_vm *vm, u64 thread)
{
	u64 stack = lua_word(w, vm->l_stack), end = lua_word(w, vm->l_stack_last), old;

	if (stack < end)
		return end;
	if (!vm->l_first_ci || !walk_read(w, &old, sizeof(old), thread + vm->l_first_ci + vm->ci_func))
		return 0;
	return old < end && end - old < LUA_STACK_MOST ? stack + (end - old) : 0;
}

/* Starts on the stack of thread. False: it is no lua_State, as in the function's epilogue. */
WALK_GLOBAL int lua_enter(struct walk *w, u32 own, u64 thread)
{
	const struct lua_vm *vm;
	struct walk_cursor *c, *own_c;
	bool begins;
	u64 end;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !thread || thread & 7 || !walk_read(w, w->scratch, LUA_OBJECT, thread) ||
	        lua_byte(w, vm->l_tt) != LUA_TTHREAD)
		return false;
	end = lua_stack_end(w, vm, thread);
	if (!end || lua_word(w, vm->l_ci) & 7)
		return false;
	i = walk_cursor(w, thread);
	if (i >= WALK_CURSORS)
		return false;
	c = lua_cursor(w, i);
	if (!c->more[0]) {
		c->at = lua_word(w, vm->l_ci);
		c->more[0] = lua_word(w, vm->l_stack);
		c->more[1] = end;
		c->more[2] = vm->l_base_ci ? lua_word(w, vm->l_base_ci) : 0;
		if (vm->l_g)
			walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, lua_word(w, vm->l_g)),
			        LUA_STATE | LUA_NO_POS | (u64)w->region.vm << LUA_COOKIE_BITS);
	}
	own_c = lua_cursor(w, own);
	own_c->at = thread;
	own_c->more[0] = i;
	begins = own_c->more[1] == LUA_UNENTERED || (vm->version == 501 && own_c->more[3]);
	own_c->more[2] = begins && c->at == lua_word(w, vm->l_ci) ? LUA_NOT_ITS : 0;
	own_c->more[1] = c->at == lua_word(w, vm->l_ci) ? LUA_ENTERED : LUA_BELOW;
	own_c->more[3] = own_c->more[4] = 0;
	return true;
}

/* Makes the lua_State of this luaV_execute() the one that is walked, wherever that is. */
WALK_GLOBAL int lua_enter_any(struct walk *w, u32 own)
{
	const struct lua_vm *vm;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return false;
	if (lua_enter(w, own, lua_running(w, vm)))
		return true;
	for (u32 i = 0; i < sizeof(lua_saved); i++)
		if (vm->copies >> lua_saved[i] & 1 && walk_has(w, lua_saved[i]) &&
		        lua_enter(w, own, lua_register(w, lua_saved[i])))
			return true;
	if (w->leaf && vm->copies >> DWREG_RDI & 1 && lua_enter(w, own, lua_register(w, DWREG_RDI)))
		return true;
	for (u32 i = 0; i < LUA_SPILLS && i < vm->nspills; i++)
		if (lua_enter(w, own, lua_spilled(w, vm, i)))
			return true;
	/* gcc saves no register over the call of a function that leaves it alone (-fipa-ra): it is as in the leaf */
	return !(ARCH_SAVED_MASK >> (vm->l_reg & 31) & 1) && lua_enter(w, own, lua_register(w, vm->l_reg));
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The step of luaV_execute(): pushes the functions of its lua_State from the running one down to the one that this
 * native frame was entered with, one a step, then the native frame itself.
 *
 * The cursor of a lua_State keeps the next CallInfo, so a second luaV_execute() on the stack goes on where the first
 * ended. The cursor of the build (key: its configuration) keeps which lua_State is being walked, whether this
 * native frame's functions are being pushed, and before that (more[3]) whether luaD_precall() or its like is inside.
 */
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

/* Makes thread the one that is walked, if it is a lua_State. False: it is none, as in the function's epilogue. */
WALK_GLOBAL int lua_enter(struct walk *w, u32 own, u64 thread)
{
	const struct lua_vm *vm;
	struct walk_cursor *c, *own_c;
	bool begins;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !thread || thread & 7 || !walk_read(w, w->scratch, LUA_OBJECT, thread) ||
	        lua_byte(w, vm->l_tt) != LUA_TTHREAD)
		return false;
	if (lua_word(w, vm->l_stack) >= lua_word(w, vm->l_stack_last) || lua_word(w, vm->l_ci) & 7)
		return false;
	i = walk_cursor(w, thread);
	if (i >= WALK_CURSORS)
		return false;
	c = lua_cursor(w, i);
	if (!c->more[0]) {
		c->at = lua_word(w, vm->l_ci);
		c->more[0] = lua_word(w, vm->l_stack);
		c->more[1] = lua_word(w, vm->l_stack_last);
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

static inline int lua_push_c(struct walk *w, u64 code)
{
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, code), LUA_C_FUNCTION | LUA_NO_POS) ? STOP_NONE
	                                                                                                  : STOP_DEPTH;
}

/* Pushes a function in Lua. pc: behind its current instruction. LUA_NOT_BEGUN: it has run none, and nothing is pushed.
 * LUA_DONE: luaV_execute() is being entered with it. */
WALK_GLOBAL int lua_push_lua(struct walk *w, u64 proto, u64 pc, u32 how, u64 ci)
{
	const struct lua_vm *vm;
	u64 code, detail, newer;
	u32 size, pos = LUA_NO_POS;
	bool entering;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!walk_read(w, w->scratch, LUA_OBJECT, proto))
		return STOP_VM_ABSENT;
	code = lua_word(w, vm->p_code);
	size = lua_int(w, vm->p_sizecode);
	if (!code || code & 3 || !size)
		return STOP_VM_BROKEN;
	entering = lua_is_entering(w, vm);
	newer = how & LUA_RUNNING && vm->pc_in_register && !entering
	                ? lua_register_pc(w, vm, code, code + (u64)size * 4)
	                : 0;
	if (how & LUA_MAY_BEGIN && !newer && !entering)
		return LUA_NOT_BEGUN;
	if (how & LUA_RUNNING && !entering && pc == code && !vm->pc_in_register) {
		if (lua_is_being_called(w, ci, code, how & LUA_FRESH))
			return LUA_NOT_BEGUN;
		if (!walk_read(w, w->scratch, LUA_OBJECT, proto))
			return STOP_VM_ABSENT;
	}
	pc = newer ? newer : pc;
	if (pc > code && (pc - code) / 4 <= size)
		pos = (u32)((pc - code) / 4 - 1);
	else if (vm->version == 501 && !(how & LUA_RUNNING)) /* OP_TAILCALL is putting it there */
		how |= LUA_TAIL;
	detail = (u64)lua_cookie(code, size, lua_int(w, vm->p_linedefined), lua_int(w, vm->p_lastlinedefined))
	         << LUA_COOKIE_BITS;
	detail |= (how & LUA_TAIL ? LUA_TAIL_CALLED : 0) | (pos < LUA_NO_POS ? pos : LUA_NO_POS);
	if (!walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, proto), detail))
		return STOP_DEPTH;
	return entering && pc == code ? LUA_DONE : LUA_PUSHED;
}

/* What lua_push_next() knows of a CallInfo. */
struct lua_call {
	u64 pc;
	u32 status;
	bool in_c, top;
};

/* Pushes the closure that scratch holds. Inlined: no call frame of BPF is left for it. */
static inline __attribute__((always_inline)) int lua_push_closure(
        struct walk *w, const struct lua_vm *vm, u32 own, struct lua_call *call)
{
	struct walk_cursor *c = lua_cursor(w, own);
	u64 code = lua_word(w, call->in_c ? vm->cl_f : vm->cl_p);
	u32 how;
	int stop;

	if (call->in_c)
		return lua_push_c(w, code);
	if (c->more[3]) /* in front of the one that runs: it has not begun */
		return LUA_PUSHED;
	if (call->top && vm->l_savedpc && !walk_read(w, &call->pc, sizeof(call->pc), c->at + vm->l_savedpc))
		return STOP_VM_ABSENT;
	how = (call->top ? LUA_RUNNING : 0) | (c->more[2] == LUA_NOT_ITS ? LUA_MAY_BEGIN : 0);
	c->more[2] = c->more[2] == LUA_NOT_ITS ? 0 : c->more[2];
	how |= call->status & vm->tail_mask ? LUA_TAIL : 0;
	how |= (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_FRESH : 0;
	stop = lua_push_lua(w, code, call->pc, how, lua_cursor(w, (u32)c->more[0])->at);
	if (stop == LUA_NOT_BEGUN)
		return LUA_PUSHED;
	c = lua_cursor(w, own);
	c->more[2]++;
	if (stop || vm->cl_is_c)
		return stop;
	return (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
}

/*
 * No function stands in the slot, or func is none. In front of the one that runs the CallInfo is of an earlier call, or
 * what malloc() has left there. On top, OP_TAILCALL has moved an argument there, or, from 5.4 on, what the function
 * returns has taken its place.
 */
static inline int lua_no_function(const struct lua_vm *vm, const struct lua_call *call, bool in_front)
{
	if (in_front)
		return LUA_PUSHED;
	if (!call->top)
		return STOP_VM_BROKEN;
	return vm->version >= 504 && (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
}

/*
 * The function at func on the Lua stack. What its slot holds counts: the CallInfo on top may be one that is being set
 * up. C enters luaV_execute() anew to call Lua, so a function in C is none of this native frame's callers; and while it
 * is itself the leaf, C on top means that its own function has returned.
 */
WALK_GLOBAL int lua_push_function(struct walk *w, u32 own, u64 func, u64 pc, u32 status)
{
	struct lua_call call = {.pc = pc, .status = status};
	const struct lua_vm *vm;
	struct walk_cursor *c;
	bool light;
	u32 type;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lua_cursor(w, own);
	call.top = c->more[1] == LUA_AT_TOP;
	if (func & 7)
		return lua_no_function(vm, &call, c->more[3]);
	if (!walk_read(w, w->scratch, LUA_SLOT, func))
		return call.top && c->more[3] ? LUA_PUSHED : STOP_VM_ABSENT;
	type = (u32)w->scratch[1] & LUA_TYPE_BITS;
	light = type == LUA_LIGHT_C;
	call.in_c = light;
	if (!light) {
		if ((type & 15) != LUA_FUNCTION)
			return lua_no_function(vm, &call, c->more[3]);
		if (!walk_read(w, w->scratch, LUA_CLOSURE, w->scratch[0]))
			return call.top ? lua_no_function(vm, &call, c->more[3]) : STOP_VM_ABSENT;
		if ((lua_byte(w, vm->l_tt) & 15) != LUA_FUNCTION)
			return lua_no_function(vm, &call, c->more[3]);
		call.in_c = vm->cl_is_c ? lua_byte(w, vm->cl_is_c) : type != LUA_FUNCTION;
	}
	if (vm->version >= 504 && call.top && call.in_c == ((status & vm->lua_mask) == vm->lua_bits))
		return lua_no_function(vm, &call, c->more[3]);
	if (call.in_c && c->more[3] && w->leaf)
		return LUA_PUSHED;
	if (call.in_c && c->more[2] == LUA_NOT_ITS)
		c->more[2] = 0;
	if (call.in_c && (c->more[2] || (call.top && w->leaf && w->region.part != LUA_RESUME)))
		return LUA_KEPT;
	return light ? lua_push_c(w, w->scratch[0]) : lua_push_closure(w, vm, own, &call);
}

/*
 * Where a function is that has not been corrected yet while luaD_reallocstack() moves the stack: the CallInfo that is
 * corrected last, in lua_State, still says where the stack was. From 5.4.5 on offsets stand there meanwhile. 5.1
 * corrects that one first; there the freed stack is read, which still has all but the first words of what it held.
 */
static inline u64 lua_moved(struct walk *w, const struct lua_vm *vm, const struct walk_cursor *c, u64 func)
{
	u64 old = 0;

	if (func >= LUA_OFFSETS && !walk_read(w, &old, sizeof(old), c->key + vm->l_first_ci + vm->ci_func))
		return func;
	return func - old + c->more[0];
}

/*
 * Pushes the function of the next CallInfo. LUA_DONE: it was the one that this luaV_execute() was entered with, or,
 * with 5.1, the next one belongs to another. LUA_BOTTOM: there are no more.
 */
WALK_GLOBAL int lua_push_next(struct walk *w, u32 own)
{
	const struct lua_vm *vm;
	struct walk_cursor *c;
	u64 func, pc, previous;
	u32 status;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lua_cursor(w, (u32)lua_cursor(w, own)->more[0]);
	if (!c->at || c->at == c->more[2])
		return LUA_BOTTOM;
	if (lua_cursor(w, own)->more[3] == c->at)
		lua_cursor(w, own)->more[3] = 0;
	if (!walk_read(w, w->scratch, LUA_CALLINFO, c->at))
		return STOP_VM_ABSENT;
	func = lua_word(w, vm->ci_func);
	pc = lua_word(w, vm->ci_savedpc);
	status = vm->ci_status_size ? lua_status(w, vm) : 0;
	previous = vm->ci_previous ? lua_word(w, vm->ci_previous) : c->at - vm->ci_size;
	if (!previous)
		return LUA_BOTTOM;
	if (func - c->more[0] >= c->more[1] - c->more[0] && vm->l_first_ci)
		func = lua_moved(w, vm, c, func);
	if (vm->cl_is_c && lua_cursor(w, own)->more[2] && lua_cursor(w, own)->more[2] != LUA_NOT_ITS &&
	        !lua_at_call(w, pc))
		return LUA_DONE;
	stop = lua_push_function(w, own, func, pc, status);
	if (stop == LUA_KEPT)
		return LUA_DONE;
	c = lua_cursor(w, (u32)lua_cursor(w, own)->more[0]);
	c->at = previous;
	lua_cursor(w, own)->more[1] = LUA_BELOW;
	return stop;
}

/* Leaves the native frame, whatever its functions were: one that could not be read makes the stack incomplete. */
static inline int lua_leave(struct walk *w, u32 own, int stop)
{
	lua_cursor(w, own)->more[1] = LUA_LEFT;
	lua_cursor(w, own)->more[3] = 0;
	if (stop < STOP_MAX && !w->lost)
		w->lost = stop;
	return native_step(w, FRAME_VM);
}

WALK_STEP int lua_step(struct walk *w)
{
	const struct lua_vm *vm;
	u32 own;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	own = walk_cursor(w, LUA_VM_KEY | w->region.vm);
	if (!vm || own >= WALK_CURSORS)
		return native_step(w, FRAME_VM);
	if (w->region.part == LUA_RESUME) {
		lua_cursor(w, own)->more[2] = lua_cursor(w, own)->more[3] = 0;
		stop = lua_cursor(w, own)->at ? lua_push_next(w, own) : LUA_BOTTOM;
		if (stop == LUA_PUSHED || stop == LUA_DONE)
			return STOP_NONE;
		lua_cursor(w, own)->at = 0;
		return stop == STOP_DEPTH ? STOP_DEPTH : lua_leave(w, own, stop);
	}
	if (w->region.part == LUA_GLUE) {
		lua_cursor(w, own)->more[3] = 1;
		return native_step(w, FRAME_VM);
	}
	if (w->region.part == LUA_CALLS) {
		lua_cursor(w, own)->more[3] = 0;
		lua_cursor(w, own)->more[1] = lua_cursor(w, own)->more[1] == LUA_LEFT ? LUA_IDLE : LUA_UNENTERED;
		return native_step(w, FRAME_VM);
	}
	if (lua_cursor(w, own)->more[1] < LUA_ENTERED &&
	        (lua_is_leaving(w, vm) || !lua_enter(w, own, lua_running(w, vm)))) {
		lua_cursor(w, own)->more[1] = LUA_LEFT;
		return native_step(w, FRAME_VM);
	}
	if (lua_cursor(w, own)->more[1] == LUA_ENTERED) {
		stop = w->leaf ? lua_settle_leaf(w, own) : LUA_MORE;
		if (stop == LUA_MORE && !vm->ci_previous && !lua_cursor(w, own)->more[3])
			stop = lua_settle_old(w, own);
		if (stop == LUA_MORE)
			stop = lua_settle(w, own);
		if (stop == LUA_RETURNED)
			return lua_leave(w, own, LUA_DONE);
		if (stop == LUA_MORE)
			return STOP_NONE;
		if (lua_cursor(w, own)->more[1] == LUA_ENTERED)
			lua_cursor(w, own)->more[1] = LUA_AT_TOP;
	}
	stop = lua_push_next(w, own);
	if (stop == LUA_PUSHED || stop == STOP_DEPTH)
		return stop;
	return lua_leave(w, own, stop);
}

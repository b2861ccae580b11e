/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The step of luaV_execute(): pushes the functions of its lua_State, from the running one down to the one that this
 * native frame was entered with, one per step, then the native frame itself.
 *
 * The cursor of a lua_State keeps the next CallInfo, so a second luaV_execute() on the stack continues where the first
 * ended. The cursor of the build (key: its configuration) keeps which lua_State is being walked, whether this native
 * frame's functions are being pushed, and before that (more[3]) whether luaD_precall() or the like is on the stack.
 */
#include "lua_walk.h"
#include "lua_enter_walk.h"
#include "lua_known_walk.h"

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
	if (how & LUA_DOUBTED &&
	        (pc - code > (u64)size * 4 || (vm->version == 501 && lua_byte(w, vm->l_tt) != LUA_TPROTO)))
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
	code = lua_word(w, vm->p_code); /* once more: BPF has little stack to keep them on */
	size = lua_int(w, vm->p_sizecode);
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

/* Pushes the closure that scratch holds. Inlined: no call frame of BPF is left for it. */
static inline __attribute__((always_inline)) int lua_push_closure(
        struct walk *w, const struct lua_vm *vm, u32 own, struct lua_call *call, bool in_c)
{
	struct walk_cursor *c = lua_cursor(w, own);
	u64 code = lua_word(w, in_c ? vm->cl_f : vm->cl_p);
	bool top = c->more[1] == LUA_AT_TOP;
	u32 how;
	int stop;

	if (in_c)
		return lua_push_c(w, code);
	if (c->more[3]) /* in front of the one that runs: it has not begun */
		return LUA_PUSHED;
	if (top && vm->l_savedpc && !walk_read(w, &call->pc, sizeof(call->pc), c->at + vm->l_savedpc))
		return STOP_VM_ABSENT;
	how = (top ? LUA_RUNNING : 0) | (c->more[2] == LUA_NOT_ITS ? LUA_MAY_BEGIN : 0);
	c->more[2] = c->more[2] == LUA_NOT_ITS ? 0 : c->more[2];
	how |= call->status & vm->tail_mask ? LUA_TAIL : 0;
	how |= (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_FRESH : 0;
	how |= call->moved ? LUA_DOUBTED : 0;
	stop = lua_push_lua(w, code, call->pc, how, lua_cursor(w, (u32)c->more[0])->at);
	if (stop == LUA_NOT_BEGUN)
		return LUA_PUSHED;
	if (!stop)
		lua_remember(w, vm, call, code);
	c = lua_cursor(w, own);
	c->more[2]++;
	if (stop || vm->cl_is_c)
		return stop;
	return (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
}

/* Pushes a caller whose Proto is known. LUA_KEPT: it has no position in that. */
static inline __attribute__((always_inline)) int lua_push_again(
        struct walk *w, const struct lua_vm *vm, u32 own, const struct lua_call *call)
{
	u64 at = (call->pc - call->code) / 4, detail;

	if (call->pc <= call->code || at > call->size || at >= LUA_NO_POS)
		return LUA_KEPT;
	detail = (u64)call->cookie << LUA_COOKIE_BITS | (at - 1);
	detail |= call->status & vm->tail_mask ? LUA_TAIL_CALLED : 0;
	if (!walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, call->proto), detail))
		return STOP_DEPTH;
	lua_cursor(w, own)->more[2]++;
	return !vm->cl_is_c && (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
}

/* Fills a window that ends with the size bytes at addr, as callers lie below; if that fails, with these alone. */
static inline bool lua_window(struct walk *w, struct window *win, u64 addr, u32 size)
{
	win->start = addr + size - LUA_WINDOW;
	win->len = LUA_WINDOW;
	if (walk_fill(w, win->word, LUA_WINDOW, win->start))
		return true;
	win->start = addr;
	win->len = walk_fill(w, win->word, size, addr) ? size : 0;
	return win->len;
}

WALK_GLOBAL int lua_load_slot(struct walk *w, u64 func)
{
	WALK_CHECK(w);
	return lua_window(w, &w->vm, func, LUA_SLOT);
}

/* The CallInfo at ci: in 5.1 they are an array; later ones that are allocated one by one, often side by side. */
WALK_GLOBAL int lua_load_call(struct walk *w, u64 ci)
{
	const struct lua_vm *vm;
	struct window *calls;
	u32 size;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return false;
	calls = &w->calls;
	size = lua_call_bytes(vm);
	if (!vm->ci_previous || calls->start - ci < LUA_WINDOW)
		return lua_window(w, calls, ci, size);
	calls->start = ci;
	calls->len = walk_fill(w, calls->word, size, ci) ? size : 0;
	return calls->len;
}

/* The TValue at call->func. */
static inline bool lua_slot(struct walk *w, struct lua_call *call, u64 *type)
{
	u64 i;

	if (!window_has(&w->vm, call->func + 8, &i) || !i) {
		if (!lua_load_slot(w, call->func) || !window_has(&w->vm, call->func + 8, &i))
			return false;
	}
	return window_word(&w->vm, i, type) && window_word(&w->vm, i - 1, &call->closure);
}

/* A word of the CallInfo that begins at word `first` of the window. */
static inline u64 lua_call_word(const struct walk *w, u64 first, u32 offset)
{
	u64 word = 0;

	return window_word(&w->calls, first + offset / 8, &word) ? word : 0;
}

/* Reads the CallInfo at ci. Returns the one of its caller; LUA_LAST: it is not readable. */
static inline u64 lua_read_call(struct walk *w, const struct lua_vm *vm, struct lua_call *call, u64 ci)
{
	u64 first, last, status;

	if (ci & 7)
		return LUA_LAST;
	if (!window_has(&w->calls, ci, &first) || !window_has(&w->calls, ci + lua_call_bytes(vm) - 8, &last)) {
		if (!lua_load_call(w, ci) || !window_has(&w->calls, ci, &first))
			return LUA_LAST;
	}
	call->func = lua_call_word(w, first, vm->ci_func);
	call->pc = lua_call_word(w, first, vm->ci_savedpc);
	call->slots = (u16)((lua_call_word(w, first, vm->ci_top) - lua_call_word(w, first, vm->ci_base)) / LUA_SLOT);
	status = lua_call_word(w, first, vm->ci_status) >> (vm->ci_status & 7) * 8;
	call->status = vm->ci_status_size == 0   ? 0
	               : vm->ci_status_size == 1 ? (u8)status
	               : vm->ci_status_size == 2 ? (u16)status
	                                         : (u32)status;
	return vm->ci_previous ? lua_call_word(w, first, vm->ci_previous) : ci - vm->ci_size;
}

/*
 * No function stands in the slot, or func is none. In front of the one that runs the CallInfo is of an earlier call, or
 * what malloc() has left there. On top, OP_TAILCALL has moved an argument there, or, from 5.4 on, what the function
 * returns has taken its place.
 */
static inline int lua_no_function(const struct lua_vm *vm, const struct lua_call *call, bool top, bool in_front)
{
	if (in_front)
		return LUA_PUSHED;
	if (!top)
		return STOP_VM_BROKEN;
	return vm->version >= 504 && (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
}

/*
 * The function at func on the Lua stack. What its slot holds counts: the CallInfo on top may be one that is being set
 * up. C enters luaV_execute() anew to call Lua, so a function in C is none of this native frame's callers; and while it
 * is itself the leaf, C on top means that its own function has returned.
 */
WALK_GLOBAL int lua_push_function(struct walk *w, u32 own, struct lua_call *call)
{
	bool top, light, in_c;
	const struct lua_vm *vm;
	struct walk_cursor *c;
	u64 word;
	u32 type;

	WALK_CHECK(w);
	WALK_CHECK(call);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lua_cursor(w, own);
	top = c->more[1] == LUA_AT_TOP;
	if (call->func & 7)
		return lua_no_function(vm, call, top, c->more[3]);
	if (!lua_slot(w, call, &word))
		return top && c->more[3] ? LUA_PUSHED : STOP_VM_ABSENT;
	type = (u32)word & LUA_TYPE_BITS;
	light = type == LUA_LIGHT_C;
	in_c = light;
	if (!light) {
		if ((type & 15) != LUA_FUNCTION)
			return lua_no_function(vm, call, top, c->more[3]);
		if (!walk_read(w, w->scratch, lua_closure_bytes(vm), call->closure))
			return top ? lua_no_function(vm, call, top, c->more[3]) : STOP_VM_ABSENT;
		if ((lua_byte(w, vm->l_tt) & 15) != LUA_FUNCTION)
			return lua_no_function(vm, call, top, c->more[3]);
		in_c = vm->cl_is_c ? lua_byte(w, vm->cl_is_c) : type != LUA_FUNCTION;
	}
	if (vm->version >= 504 && top && in_c == ((call->status & vm->lua_mask) == vm->lua_bits))
		return lua_no_function(vm, call, top, c->more[3]);
	if (in_c && vm->version == 501 && call->moved)
		return STOP_VM_BROKEN;
	if (in_c && c->more[3] && w->leaf)
		return LUA_PUSHED;
	if (in_c && c->more[2] == LUA_NOT_ITS)
		c->more[2] = 0;
	if (in_c && (c->more[2] || (top && w->leaf && w->region.part != LUA_RESUME)))
		return LUA_KEPT;
	return light ? lua_push_c(w, call->closure) : lua_push_closure(w, vm, own, call, in_c);
}

/* Pushes a caller that is the closure of the function before, or that an earlier walk found. LUA_KEPT: neither. */
WALK_GLOBAL int lua_push_known(struct walk *w, u32 own, struct lua_call *call)
{
	const struct lua_vm *vm;
	u64 type;

	WALK_CHECK(w);
	WALK_CHECK(call);
	vm = walk_arena(w, w->region.vm);
	if (!vm || call->func & 7 || !lua_slot(w, call, &type) || ((u32)type & LUA_TYPE_BITS) != LUA_FUNCTION)
		return LUA_KEPT;
	if (!(call->closure == call->known && (!vm->cl_is_c || call->pc == call->follows)) && !lua_find_known(w, call))
		return LUA_KEPT;
	return lua_push_again(w, vm, own, call);
}

/*
 * Where the function is whose CallInfo leads out of the stack, as luaD_reallocstack() moves that. The CallInfo in
 * lua_State, which is corrected last from 5.2 on, still says where the stack was; 5.4 makes the new stack known
 * after that, so there it says that nothing moves, and what is corrected leads into the new one. From 5.4.5 on offsets
 * stand there meanwhile. 5.1 corrects the first CallInfo first; there the freed stack is read, which still has all but
 * the first words of what it held.
 */
static inline u64 lua_moved(struct walk *w, const struct lua_vm *vm, const struct walk_cursor *c, u64 func)
{
	u64 old = 0;

	if (!vm->l_first_ci ||
	        (func >= LUA_OFFSETS && !walk_read(w, &old, sizeof(old), c->key + vm->l_first_ci + vm->ci_func)))
		return func;
	return func - old + c->more[0];
}

/*
 * 5.2 marks a function as called by its luaV_execute() only after a hook of the call has run. Is the function that was
 * just pushed such a one, and this native frame, by its registers, that of its caller?
 */
WALK_GLOBAL int lua_runs_caller(struct walk *w, u32 own, u64 caller)
{
	u64 ci;

	WALK_CHECK(w);
	ci = lua_cursor(w, (u32)lua_cursor(w, own)->more[0])->at;
	return lua_cursor(w, own)->more[1] == LUA_BELOW && !lua_is_in_register(w, ci) && lua_is_in_register(w, caller);
}

/*
 * Pushes the function of the next CallInfo. LUA_DONE: it was the one that this luaV_execute() was entered with, or,
 * with 5.1, the next one belongs to another. LUA_BOTTOM: there are no more.
 */
WALK_GLOBAL int lua_push_next(struct walk *w, u32 own, struct lua_call *call)
{
	const struct lua_vm *vm;
	struct walk_cursor *c, *own_c;
	u64 previous;
	int stop;

	WALK_CHECK(w);
	WALK_CHECK(call);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	own_c = lua_cursor(w, own);
	c = lua_cursor(w, (u32)own_c->more[0]);
	if (!c->at || c->at == c->more[2])
		return LUA_BOTTOM;
	if (own_c->more[3] == c->at)
		own_c->more[3] = 0;
	previous = lua_read_call(w, vm, call, c->at);
	if (previous == LUA_LAST)
		return STOP_VM_ABSENT;
	if (!previous)
		return LUA_BOTTOM;
	call->moved = call->func - c->more[0] >= c->more[1] - c->more[0];
	if (call->moved)
		call->func = lua_moved(w, vm, c, call->func);
	stop = LUA_KEPT;
	call->lasts = own_c->more[1] == LUA_BELOW && !own_c->more[3] && own_c->more[2] != LUA_NOT_ITS && !call->moved;
	if (call->lasts)
		stop = lua_push_known(w, own, call);
	if (stop == LUA_KEPT) {
		own_c = lua_cursor(w, own);
		if (vm->cl_is_c && own_c->more[2] && own_c->more[2] != LUA_NOT_ITS) {
			if (call->pc != call->follows && !lua_at_call(w, call->pc)) {
				call->lasts = false;
				return LUA_DONE;
			}
			call->follows = call->pc;
		}
		call->lasts &= !vm->cl_is_c || call->pc == call->follows;
		stop = lua_push_function(w, own, call);
	} else {
		call->lasts = false;
	}
	if (stop == LUA_KEPT)
		return LUA_DONE;
	if (stop == LUA_DONE && vm->version == 502 && lua_runs_caller(w, own, previous))
		stop = LUA_PUSHED;
	c = lua_cursor(w, (u32)lua_cursor(w, own)->more[0]);
	c->at = previous;
	lua_cursor(w, own)->more[1] = LUA_BELOW;
	return stop;
}

/* Pushes some functions. Inlined: BPF's chain of calls is as long as it may be. */
static inline __attribute__((always_inline)) int lua_push_some(struct walk *w, u32 own)
{
	struct lua_call call = {};
	int stop = LUA_PUSHED;
	u32 i;

	for (i = 0; i < LUA_FUNCTIONS_A_STEP && stop == LUA_PUSHED; i++) {
		stop = lua_push_next(w, own, &call);
		lua_leave_known(w, &call);
	}
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
		stop = lua_cursor(w, own)->at ? lua_push_some(w, own) : LUA_BOTTOM;
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
	if (lua_cursor(w, own)->more[1] < LUA_ENTERED) {
		bool leaving = lua_is_leaving(w, vm);

		if (leaving || !lua_enter_any(w, own))
			return lua_leave(w, own, leaving ? LUA_DONE : STOP_VM_BROKEN);
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
	stop = lua_push_some(w, own);
	if (stop == LUA_PUSHED || stop == STOP_DEPTH)
		return stop;
	return lua_leave(w, own, stop);
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The step of luaV_execute(): pushes the functions of its lua_State from the running one down to the one that this
 * native frame was entered with, one a step, then the native frame itself.
 *
 * The cursor of a lua_State keeps the next CallInfo, so a second luaV_execute() on the stack goes on where the first
 * ended. The cursor of the build (key: its configuration) keeps which lua_State is being walked, and whether this
 * native frame's functions are being pushed.
 */
#include "walk.h"
#include "lua.h"

#define LUA_TTHREAD   8
#define LUA_CALLINFO  72
#define LUA_CLOSURE   40
#define LUA_SLOT      16   /* of the Lua stack: a TValue */
#define LUA_TYPE_BITS 0x3f /* of TValue.tt: without the mark of collectable objects (BIT_ISCOLLECTABLE, 5.2 on) */
#define LUA_LOOK      1024 /* twice the CallInfos that lua_settle() looks at */
#define LUA_LIGHT_C   22   /* LUA_VLCF: a C function without upvalues is no object (5.2 on) */
#define LUA_FUNCTION  6
#define LUA_VM_KEY    (1ULL << 63)
/* more[2] of the build's cursor: how many functions in Lua this luaV_execute() is known to run; the first one is not
 * its. */
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
/* Of lua_push_lua(): luaV_execute() runs the function now; it may not have done so yet. */
enum { LUA_RUNNING = 1, LUA_MAY_BEGIN = 2 };

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
	own_c->more[2] = own_c->more[1] == LUA_UNENTERED && c->at == lua_word(w, vm->l_ci) ? LUA_NOT_ITS : 0;
	own_c->more[1] = c->at == lua_word(w, vm->l_ci) ? LUA_ENTERED : LUA_BELOW;
	own_c->more[3] = own_c->more[4] = 0;
	return true;
}

static inline u32 lua_status(const struct walk *w, const struct lua_vm *vm)
{
	u64 word = lua_word(w, vm->ci_status) >> (vm->ci_status & 7) * 8;

	return vm->ci_status_size == 1 ? (u8)word : vm->ci_status_size == 2 ? (u16)word : (u32)word;
}

static const u8 lua_saved[] = {DWREG_RBX, DWREG_RBP, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15};

/* What luaV_execute() keeps in a register of the callee is as good as read: the highest that points into the bytecode.
 */
static inline u64 lua_register_pc(const struct walk *w, u64 code, u64 end)
{
	u64 best = 0;

	for (u32 i = 0; i < sizeof(lua_saved); i++) {
		u64 value = walk_has(w, lua_saved[i]) ? w->reg[lua_saved[i]] : 0;

		if (value > code && value <= end && !(value & 3) && value > best)
			best = value;
	}
	return best;
}

/* From 5.2 on luaV_execute() has its CallInfo in a variable. */
WALK_GLOBAL int lua_is_in_register(struct walk *w, u64 ci)
{
	WALK_CHECK(w);
	for (u32 i = 0; i < sizeof(lua_saved); i++)
		if (walk_has(w, lua_saved[i]) && w->reg[lua_saved[i]] == ci)
			return true;
	return false;
}

/* 5.1 does not mark where luaV_execute() was entered: not where the caller, in Lua, is at a call. */
WALK_GLOBAL int lua_at_call(struct walk *w, u64 pc)
{
	const struct lua_vm *vm;
	u32 instruction;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_read(w, &instruction, sizeof(instruction), pc - 4))
		return false;
	instruction &= vm->op_mask;
	return instruction == vm->op_call || instruction == vm->op_tailcall;
}

/* 5.1: what stands at func, and whether the registers point into its bytecode. */
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
	return lua_register_pc(w, code, code + (u64)lua_int(w, vm->p_sizecode) * 4) ? LUA_RUNS : LUA_IN_LUA;
}

/* What the registers of luaV_execute() say of the CallInfo in scratch, which stands at ci. */
static inline int lua_look(struct walk *w, const struct lua_vm *vm, u64 ci)
{
	if (!vm->ci_previous)
		return lua_looks_run(w, lua_word(w, vm->ci_func));
	if (lua_is_in_register(w, ci))
		return LUA_RUNS;
	return (lua_status(w, vm) & vm->lua_mask) == vm->lua_bits ? LUA_IN_LUA : LUA_IN_C;
}

/*
 * Has the function that luaV_execute() was entered with just returned, so that the CallInfo at ci, on top, is its
 * caller's? From 5.2 on its registers still hold that of the function, which stands behind; in 5.1 that is unknown.
 */
WALK_GLOBAL int lua_has_returned(struct walk *w, u64 ci)
{
	const struct lua_vm *vm;
	u64 next;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->ci_previous || !walk_read(w, w->scratch, LUA_CALLINFO, ci))
		return false;
	next = lua_word(w, vm->ci_previous + 8u);
	return next && lua_is_in_register(w, next) && walk_read(w, w->scratch, LUA_CALLINFO, next) &&
	       (lua_status(w, vm) & vm->fresh_mask) == vm->fresh_bits;
}

/*
 * luaV_execute() has called what runs now. Is the CallInfo on top that of its function, or of one in C that it called?
 * Others may be in front: luaD_precall() sets one up that still says what an earlier call was, an error has left some
 * already. They are passed over. Looks at one; LUA_MORE: at the next one, too. LUA_RETURNED: all functions of this
 * luaV_execute() have.
 */
WALK_GLOBAL int lua_settle(struct walk *w, u32 own)
{
	struct walk_cursor *c, *thread;
	const struct lua_vm *vm;
	u64 ci;
	int look;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return LUA_SETTLED;
	c = lua_cursor(w, own);
	thread = lua_cursor(w, (u32)c->more[0]);
	ci = c->more[3] ? c->more[3] : thread->at;
	if (!ci || ci == LUA_LAST || ci == thread->more[2] || c->more[4] >= LUA_LOOK ||
	        !walk_read(w, w->scratch, LUA_CALLINFO, ci))
		return lua_has_returned(w, thread->at) ? LUA_RETURNED : LUA_SETTLED;
	c->more[3] = vm->ci_previous ? lua_word(w, vm->ci_previous) : ci - vm->ci_size;
	look = lua_look(w, vm, ci);
	c = lua_cursor(w, own);
	if (look != LUA_RUNS) {
		c->more[4] = (c->more[4] + 2) | (look == LUA_IN_LUA);
		c->more[3] = c->more[3] ? c->more[3] : LUA_LAST;
		return LUA_MORE;
	}
	c->more[2] = 0;
	if (c->more[4] & 1) { /* of the others some are in Lua, so not all were called from here */
		c->more[1] = LUA_BELOW;
		lua_cursor(w, (u32)c->more[0])->at = ci;
	}
	return LUA_SETTLED;
}

static inline int lua_push_c(struct walk *w, u64 code)
{
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, code), LUA_C_FUNCTION | LUA_NO_POS) ? STOP_NONE
	                                                                                                  : STOP_DEPTH;
}

/* Pushes a function in Lua. pc: behind its current instruction. LUA_NOT_BEGUN: it has run none, nothing is pushed. */
WALK_GLOBAL int lua_push_lua(struct walk *w, u64 proto, u64 pc, u32 tail, u32 how)
{
	const struct lua_vm *vm;
	u64 code, detail, newer;
	u32 size, pos = LUA_NO_POS;

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
	newer = how & LUA_RUNNING && vm->pc_in_register ? lua_register_pc(w, code, code + (u64)size * 4) : 0;
	if (how & LUA_MAY_BEGIN && !newer)
		return LUA_NOT_BEGUN;
	pc = newer ? newer : pc;
	if (pc > code && (pc - code) / 4 <= size)
		pos = (u32)((pc - code) / 4 - 1);
	detail = (u64)lua_cookie(code, size, lua_int(w, vm->p_linedefined), lua_int(w, vm->p_lastlinedefined))
	         << LUA_COOKIE_BITS;
	detail |= (tail ? LUA_TAIL_CALLED : 0) | (pos < LUA_NO_POS ? pos : LUA_NO_POS);
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, proto), detail) ? STOP_NONE : STOP_DEPTH;
}

/* What lua_push_next() knows of a CallInfo. */
struct lua_call {
	u64 pc;
	u32 status;
	bool in_c, top;
};

/* Pushes the closure that scratch holds. */
static inline int lua_push_closure(struct walk *w, const struct lua_vm *vm, u32 own, struct lua_call *call)
{
	struct walk_cursor *c = lua_cursor(w, own);
	u64 code = lua_word(w, call->in_c ? vm->cl_f : vm->cl_p);
	u32 how;
	int stop;

	if (call->in_c)
		return lua_push_c(w, code);
	if (call->top && vm->l_savedpc && !walk_read(w, &call->pc, sizeof(call->pc), c->at + vm->l_savedpc))
		return STOP_VM_ABSENT;
	how = (call->top ? LUA_RUNNING : 0) | (c->more[2] == LUA_NOT_ITS ? LUA_MAY_BEGIN : 0);
	c->more[2] = c->more[2] == LUA_NOT_ITS ? 0 : c->more[2];
	stop = lua_push_lua(w, code, call->pc, call->status & vm->tail_mask, how);
	if (stop == LUA_NOT_BEGUN)
		return LUA_PUSHED;
	c = lua_cursor(w, own);
	c->more[2]++;
	if (stop || vm->cl_is_c)
		return stop;
	return (call->status & vm->fresh_mask) == vm->fresh_bits ? LUA_DONE : LUA_PUSHED;
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
	if (!walk_read(w, w->scratch, LUA_SLOT, func))
		return STOP_VM_ABSENT;
	c = lua_cursor(w, own);
	call.top = c->more[1] == LUA_AT_TOP;
	type = (u32)w->scratch[1] & LUA_TYPE_BITS;
	light = type == LUA_LIGHT_C;
	if (!light && (type & 15) != LUA_FUNCTION)
		return call.top ? LUA_PUSHED : STOP_VM_BROKEN;
	call.in_c = light;
	if (!light) {
		if (!walk_read(w, w->scratch, LUA_CLOSURE, w->scratch[0]))
			return STOP_VM_ABSENT;
		call.in_c = vm->cl_is_c ? lua_byte(w, vm->cl_is_c) : type != LUA_FUNCTION;
	}
	if (call.in_c && c->more[2] == LUA_NOT_ITS)
		c->more[2] = 0;
	if (call.in_c && (c->more[2] || (call.top && w->leaf && w->region.part != LUA_RESUME)))
		return LUA_KEPT;
	return light ? lua_push_c(w, w->scratch[0]) : lua_push_closure(w, vm, own, &call);
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
	if (!walk_read(w, w->scratch, LUA_CALLINFO, c->at))
		return STOP_VM_ABSENT;
	func = lua_word(w, vm->ci_func);
	pc = lua_word(w, vm->ci_savedpc);
	status = vm->ci_status_size ? lua_status(w, vm) : 0;
	previous = vm->ci_previous ? lua_word(w, vm->ci_previous) : c->at - vm->ci_size;
	if (!previous)
		return LUA_BOTTOM;
	if (func < c->more[0] || func >= c->more[1] || func & 7)
		return STOP_VM_BROKEN;
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
		lua_cursor(w, own)->more[2] = 0;
		stop = lua_cursor(w, own)->at ? lua_push_next(w, own) : LUA_BOTTOM;
		if (stop == LUA_PUSHED || stop == LUA_DONE)
			return STOP_NONE;
		lua_cursor(w, own)->at = 0;
		return stop == STOP_DEPTH ? STOP_DEPTH : lua_leave(w, own, stop);
	}
	if (w->region.part == LUA_GLUE)
		return native_step(w, FRAME_VM);
	if (w->region.part == LUA_CALLS) {
		lua_cursor(w, own)->more[1] = lua_cursor(w, own)->more[1] == LUA_LEFT ? LUA_IDLE : LUA_UNENTERED;
		return native_step(w, FRAME_VM);
	}
	if (lua_cursor(w, own)->more[1] < LUA_ENTERED && !lua_enter(w, own, lua_running(w, vm))) {
		lua_cursor(w, own)->more[1] = LUA_LEFT;
		return native_step(w, FRAME_VM);
	}
	if (lua_cursor(w, own)->more[1] == LUA_ENTERED) {
		stop = w->leaf ? LUA_SETTLED : lua_settle(w, own);
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

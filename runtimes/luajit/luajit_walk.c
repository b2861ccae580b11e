/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Walks LuaJIT: from one native frame of the VM (its interpreter, or a trace) come the Lua frames of one cframe, then the
 * native frame itself. README.md tells how the two stacks are paired.
 *
 * A cursor for each lua_State: at is the address of the link slot (base - 8) of the frame that was pushed last, more[0]
 * the cframe that owns it, more[1] the state below.
 */
#include "walk.h"
#include "luajit.h"

#define FRAMES_A_STEP 8	      /* Lua frames that one step follows */
#define UNLINKED_MAX  4	      /* cframes without Lua frames in a row (lua_cpcall, trace exit), enough in practice */
#define DELTA_MIN     16 /* bytes of stack in one frame: function and link */
#define DELTA_MAX     (1 << 20) /* LUAI_MAXSTACK is 65,500 slots */

#define AT_BOTTOM   1 /* cursor.at: all frames of this lua_State were seen */
#define PC_BITS	    48
#define PENDING	    (1ull << 60) /* more[1]: the frame is not pushed yet; its pc is in the low bits, 0 if unknown */
#define FRAMES_DONE (-1) /* results, besides stop reasons */
#define FRAMES_PUSH (-2)

#define ALWAYS_INLINE static inline __attribute__((always_inline)) /* BPF has five arguments */

#define FFID_C	    1 /* an ordinary C function; above: builtins; 0: Lua */
#define GCT_THREAD  6 /* ~LJ_TTHREAD */
#define GCT_FUNC    8 /* ~LJ_TFUNC */
#define TAG_SHIFT   47
#define TAG_FUNC    (~(u64)8 & 0x1ffff) /* the upper 17 bits of a slot */
#define TAG_THREAD  (~(u64)6 & 0x1ffff)
#define GC_POINTER  ((1ull << TAG_SHIFT) - 1)
#define CFRAME_MASK (~3ull) /* the low bits say: may yield, being unwound */

enum link_type { LINK_LUA, LINK_C, LINK_CONT, LINK_VARG, LINK_CP = 5 };
#define LINK_BOTTOM	  (~0ull) /* nil */
#define CONT_FFI_CALLBACK 1


#define WORDS	     8	/* room for an object's head, a power of two for the verifier */
#define OBJECT_BYTES 48 /* read of it: covers all that is needed of a GCfunc or a cframe */

static inline u64 word_at(const u64 *words, u32 offset)
{
	return words[(offset >> 3) & (WORDS - 1)];
}

static inline u8 byte_at(const u64 *words, u32 offset)
{
	return (u8)(word_at(words, offset) >> (offset & 7) * 8);
}

static inline const struct luajit_vm *vm_config(struct walk *w)
{
	return walk_arena(w, w->region.vm);
}

/* The cursor in use; vm_state is its number + 1 while the frames of a native frame are being pushed. */
static inline struct walk_cursor *cursor_of(struct walk *w)
{
	u32 i = w->vm_state - 1;

	WALK_BARRIER(i);
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

static inline bool read_word(struct walk *w, u64 addr, u64 *ret)
{
	return walk_read(w, ret, sizeof(*ret), addr);
}

/* Is pc (behind the current instruction) in the bytecode of this prototype? */
static inline bool pc_inside(struct walk *w, const struct luajit_vm *vm, u64 bytecode, u64 pc)
{
	u32 size;

	if (pc < bytecode || pc & 3 || !walk_read(w, &size, sizeof(size), bytecode - vm->proto_size + vm->proto_sizebc))
		return false;
	return (pc - bytecode) / 4 <= size;
}

/* What stands at an address that may be a base. */
enum standing { STANDS_UNSURE, STANDS, STANDS_AT_PC, STANDS_NO_MORE };

/*
 * Does a frame stand at base, that of a function which runs at pc? For a Lua function pc must lie in it, or be its link:
 * a call or a return is under way then. Returns an enum standing.
 */
WALK_GLOBAL int luajit_accepts(struct walk *w, u64 base, u64 pc)
{
	const struct luajit_vm *vm;
	u64 fn[WORDS] = {}, slot, link;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm || base & 7 || !walk_vm(w, base - 8, &link) || !walk_vm(w, base - 16, &slot))
		return 0;
	if (slot >> TAG_SHIFT != TAG_FUNC || !walk_read(w, fn, OBJECT_BYTES, slot & GC_POINTER))
		return 0;
	if (byte_at(fn, vm->l_gct) != GCT_FUNC)
		return 0;
	if (byte_at(fn, vm->fn_ffid)) /* builtins put results where their link was, too */
		return link >> TAG_SHIFT ? STANDS_UNSURE : STANDS;
	if (pc_inside(w, vm, word_at(fn, vm->fn_pc), pc))
		return STANDS_AT_PC;
	return link == pc ? STANDS : STANDS_UNSURE;
}

struct position {
	u64 pc;		 /* behind the current instruction; 0: unknown */
	u32 instruction; /* the current one; 0: to be read, after a check that pc makes sense */
};

/* What is known of the function that was pushed last: recursion asks for it again and again. */
struct function {
	u64 slot; /* its value on the Lua stack; 0: nothing is known */
	u64 code; /* bytecode, or code of a C function */
	u32 ffid;
};

static inline int read_function(struct walk *w, const struct luajit_vm *vm, u64 slot, struct function *f)
{
	u64 fn[WORDS] = {};

	if (!walk_read(w, fn, OBJECT_BYTES, slot & GC_POINTER))
		return STOP_VM_ABSENT;
	if (byte_at(fn, vm->l_gct) != GCT_FUNC)
		return STOP_VM_BROKEN;
	f->slot = slot;
	f->ffid = byte_at(fn, vm->fn_ffid);
	f->code = word_at(fn, f->ffid ? vm->fn_f : vm->fn_pc);
	return STOP_NONE;
}

static inline int push_native(struct walk *w, const struct function *f)
{
	u64 addr = f->ffid == FFID_C ? f->code : f->ffid;
	u64 detail = luajit_detail(f->ffid == FFID_C ? LUAJIT_C : LUAJIT_FAST, LUAJIT_NO_POS, f->ffid);

	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, addr), detail) ? STOP_NONE : STOP_DEPTH;
}

/*
 * Pushes the frame at `at`. Thread objects stand where no function is: at the bottom, in errors.
 */
ALWAYS_INLINE int push_frame(struct walk *w, const struct luajit_vm *vm, u64 at, struct position p, u64 jit,
	struct function *f)
{
	u64 slot, where, detail;
	u32 pos = LUAJIT_NO_POS;
	int stop;

	if (!walk_vm(w, at - 8, &slot))
		return STOP_VM_ABSENT;
	if (slot != f->slot) {
		if (slot >> TAG_SHIFT == TAG_THREAD)
			return STOP_NONE;
		if (slot >> TAG_SHIFT != TAG_FUNC)
			return STOP_VM_BROKEN;
		stop = read_function(w, vm, slot, f);
		if (stop)
			return stop;
	}
	if (f->ffid)
		return push_native(w, f);
	if (p.pc && !p.instruction && !pc_inside(w, vm, f->code, p.pc))
		p.pc = 0;
	if (p.pc > f->code)
		pos = (u32)((p.pc - f->code) / 4 - 1) & LUAJIT_NO_POS;
	if (!p.instruction || pos == LUAJIT_NO_POS) {
		if (!walk_read(w, &p.instruction, 4, f->code + (pos == LUAJIT_NO_POS ? 0 : pos) * 4ull))
			return STOP_VM_ABSENT;
	}
	detail = luajit_detail(LUAJIT_LUA, pos, luajit_cookie(vm->bc_patched, p.instruction)) | jit;
	where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, jit ? FRAME_APPROX : 0, f->code - vm->proto_size);
	return walk_push(w, where, detail) ? STOP_NONE : STOP_DEPTH;
}

WALK_GLOBAL int luajit_push(struct walk *w, u64 at, u64 pc, u64 jit)
{
	struct function f = {};
	const struct luajit_vm *vm;

	WALK_CHECK(w);
	vm = vm_config(w);
	return vm ? push_frame(w, vm, at, (struct position){ .pc = pc }, jit, &f) : STOP_ARENA;
}

/*
 * The cursor's frame belongs to cframe cf, or to one below if cf has no Lua frames (a negative nres tells how high the
 * stack was when it was made). A frame that is PENDING gets the pc that the cframe has saved.
 */
WALK_GLOBAL int luajit_own(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	u64 words[WORDS] = {}, stack;
	s32 nres;
	u32 i;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm)
		return STOP_ARENA;
	c = cursor_of(w);
	for (i = 0; i < UNLINKED_MAX; i++) {
		cf &= CFRAME_MASK;
		c->more[0] = cf;
		if (!cf) {
			c->at = AT_BOTTOM;
			return STOP_NONE;
		}
		if (!walk_read(w, words, OBJECT_BYTES, cf))
			return STOP_STACK_ABSENT;
		if ((c->more[1] & PENDING) && !(c->more[1] & ((1ull << PC_BITS) - 1)))
			c->more[1] = PENDING | (word_at(words, vm->cf_pc) & ((1ull << PC_BITS) - 1));
		nres = (s32)(word_at(words, vm->cf_nres) >> (vm->cf_nres & 4) * 8);
		if (nres >= 0)
			return STOP_NONE;
		if (!read_word(w, c->key + vm->l_stack, &stack))
			return STOP_VM_ABSENT;
		if (c->at >= stack - (s64)nres)
			return STOP_NONE;
		if (c->more[1] & PENDING)
			c->more[1] = PENDING;
		cf = word_at(words, vm->cf_prev);
	}
	return STOP_VM_BROKEN;
}

/* To the frame that the cursor's cframe was entered from: the cframe below owns it. */
static inline int follow_c(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c)
{
	u64 prev;

	if (!walk_read(w, &prev, sizeof(prev), c->more[0] + vm->cf_prev))
		return STOP_STACK_ABSENT;
	c->more[1] = PENDING;
	return luajit_own(w, prev);
}

/* Follows a link down to the frame below. FRAMES_PUSH: that is to be pushed, if it belongs to the right cframe. */
ALWAYS_INLINE int follow(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c, u64 link, struct position *p)
{
	u64 at = c->at, delta = link & ~7ull, cont;

	if ((link & 3) == LINK_LUA) {
		if (!walk_read(w, &p->instruction, sizeof(p->instruction), link - 4))
			return STOP_VM_ABSENT;
		delta = 8 * (2 + (u64)(p->instruction >> 8 & 0xff));
		p->pc = link;
	} else if (delta < DELTA_MIN || delta > DELTA_MAX) {
		return STOP_VM_BROKEN;
	}
	c->at = at - delta;
	switch (link & 7) {
	case LINK_C:
	case LINK_CP:
		return follow_c(w, vm, c);
	case LINK_VARG: /* the same function again */
		return STOP_NONE;
	case LINK_CONT:
		if (!walk_vm(w, at - 16, &p->pc) || !walk_vm(w, at - 24, &cont))
			return STOP_VM_ABSENT;
		if (cont == CONT_FFI_CALLBACK)
			return follow_c(w, vm, c);
		break;
	}
	return FRAMES_PUSH;
}

/* One frame further. FRAMES_DONE: all frames of cframe cf were pushed. */
ALWAYS_INLINE int next_frame(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c, u64 cf, struct function *f)
{
	struct position p = {};
	u64 link;
	int stop;

	if (c->at == AT_BOTTOM || c->more[0] > cf)
		return FRAMES_DONE;
	if (c->more[1] & PENDING) {
		p.pc = c->more[1] & ((1ull << PC_BITS) - 1);
		c->more[1] = 0;
	} else {
		if (!walk_vm(w, c->at, &link))
			return STOP_VM_ABSENT;
		if (link == LINK_BOTTOM) {
			c->at = AT_BOTTOM;
			return FRAMES_DONE;
		}
		stop = follow(w, vm, c, link, &p);
		if (stop != FRAMES_PUSH)
			return stop;
	}
	return c->more[0] == cf ? push_frame(w, vm, c->at, p, 0, f) : STOP_NONE;
}

/* Pushes some frames of cframe cf. FRAMES_DONE when there are no more. */
WALK_GLOBAL int luajit_frames(struct walk *w, u64 cf)
{
	struct function f = {};
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm)
		return STOP_ARENA;
	c = cursor_of(w);
	for (i = 0; i < FRAMES_A_STEP && !stop; i++)
		stop = next_frame(w, vm, c, cf, &f);
	return stop;
}

/* Makes the cursor of a lua_State the one in use. False: there are too many of them on this stack. */
static inline bool select_cursor(struct walk *w, u64 l)
{
	u32 i = walk_cursor(w, l), j;

	for (j = 0; j < WALK_CURSORS && i == WALK_CURSORS; j++) {
		if (w->cursor[j].at == AT_BOTTOM) {
			i = j;
			w->cursor[j].key = l;
			w->cursor[j].at = 0;
			w->cursor[j].more[0] = w->cursor[j].more[1] = 0;
		}
	}
	w->vm_state = i + 1;
	return i < WALK_CURSORS;
}

struct thread { /* of a lua_State */
	u64 base, stack, maxstack, cframe, g;
};

#define THREAD_BYTES 96

static inline u64 thread_word(const u64 *words, u32 offset)
{
	return words[(offset >> 3) & (2 * WORDS - 1)];
}

static inline int read_thread(struct walk *w, const struct luajit_vm *vm, u64 l, struct thread *ret)
{
	u64 words[2 * WORDS] = {};

	if (!walk_read(w, words, THREAD_BYTES, l))
		return STOP_VM_ABSENT;
	ret->base = thread_word(words, vm->l_base);
	ret->stack = thread_word(words, vm->l_stack);
	ret->maxstack = thread_word(words, vm->l_maxstack);
	ret->cframe = thread_word(words, vm->l_cframe) & CFRAME_MASK;
	ret->g = thread_word(words, vm->l_glref);
	if ((u8)(thread_word(words, vm->l_gct) >> (vm->l_gct & 7) * 8) != GCT_THREAD)
		return STOP_VM_BROKEN;
	if (ret->base <= ret->stack || ret->base > ret->maxstack || ret->base & 7)
		return STOP_VM_BROKEN;
	return STOP_NONE;
}

static inline bool in_stack(const struct thread *t, u64 base)
{
	return base > t->stack + 8 && base <= t->maxstack;
}

/* Does a frame stand at base still? Results of a function go where it stood, before it returns. */
static inline bool has_frame(struct walk *w, u64 base)
{
	u64 slot, link;

	if (!walk_vm(w, base - 8, &link) || !walk_vm(w, base - 16, &slot))
		return false;
	return slot >> TAG_SHIFT == TAG_THREAD || (slot >> TAG_SHIFT == TAG_FUNC && link >> TAG_SHIFT == 0);
}

/* Is pc where a function whose base was this one will return to? The call before it tells how far down its caller is. */
WALK_GLOBAL int luajit_returns(struct walk *w, u64 base, u64 pc)
{
	u32 call;

	WALK_CHECK(w);
	if (pc & 3 || !walk_read(w, &call, sizeof(call), pc - 4))
		return 0;
	return luajit_accepts(w, base - 8 * (2 + (u64)(call >> 8 & 0xff)), pc) == STANDS_AT_PC;
}

/*
 * The base of the running function. The interpreter keeps it in rdx, or in rbp while it calls a function that needs no
 * lua_State, else in L->base. STANDS_NO_MORE: the function is about to return, and its frame is overwritten.
 */
static inline u64 find_base(struct walk *w, const struct thread *t, u64 pc, int *standing)
{
	u64 rdx = w->reg[DWREG_RDX], rbp = w->reg[DWREG_RBP];
	bool live = walk_has(w, DWREG_RDX) && in_stack(t, rdx);

	if (live && (*standing = luajit_accepts(w, rdx, pc)))
		return rdx;
	*standing = STANDS_NO_MORE;
	if (live && luajit_returns(w, rdx, pc))
		return rdx;
	if (walk_has(w, DWREG_RBP) && in_stack(t, rbp) && (*standing = luajit_accepts(w, rbp, pc)))
		return rbp;
	*standing = luajit_accepts(w, t->base, pc);
	if (*standing)
		return t->base;
	rdx = live ? rdx : t->base;
	*standing = has_frame(w, rdx) ? STANDS_UNSURE : STANDS_NO_MORE;
	return rdx;
}

/* The link of a function that is gone: still in rbx, or saved in the cframe. */
static inline u64 find_link(struct walk *w, u64 base, u64 saved)
{
	u64 rbx = w->reg[DWREG_RBX];

	if (w->region.part == LUAJIT_LEAVE) /* its type was compared with that of C by xor */
		rbx ^= LINK_C;
	if (luajit_returns(w, base, rbx))
		return rbx;
	if (luajit_returns(w, base, saved))
		return saved;
	return (rbx & 3) && rbx >= DELTA_MIN && rbx < DELTA_MAX ? rbx : saved;
}

/* Goes on below a frame whose link is not on the stack (any more). */
WALK_GLOBAL int luajit_below(struct walk *w, u64 cf, u64 link)
{
	struct function f = {};
	struct position p = {};
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm)
		return STOP_ARENA;
	c = cursor_of(w);
	stop = follow(w, vm, c, link, &p);
	if (stop != FRAMES_PUSH)
		return stop;
	return c->more[0] == cf ? push_frame(w, vm, c->at, p, 0, &f) : STOP_NONE;
}

/* Pushes the running function, in cframe cf, and the one below where the link is still in rbx. */
static inline int push_running(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c, const struct thread *t,
	u64 cf)
{
	u64 pc = walk_has(w, DWREG_RBX) ? w->reg[DWREG_RBX] : 0, saved;
	int stop, standing;

	c->more[0] = cf;
	if (!walk_stack(w, cf + vm->cf_pc, &saved))
		return STOP_STACK_ABSENT;
	if (w->leaf && w->region.part == LUAJIT_CALL && in_stack(t, w->reg[DWREG_RDX])) {
		c->at = w->reg[DWREG_RDX] - 8;
		stop = luajit_push(w, c->at, 0, 0);
		return stop ? stop : luajit_below(w, cf, w->reg[DWREG_RBX]);
	}
	c->at = find_base(w, t, pc, &standing) - 8;
	if (standing == STANDS_NO_MORE)
		return luajit_below(w, cf, find_link(w, c->at + 8, saved));
	if (standing == STANDS_AT_PC)
		saved = pc;
	c->more[1] = PENDING | (saved & ((1ull << PC_BITS) - 1));
	return luajit_own(w, cf);
}

/*
 * Is a frame of C being made (its link is in rbx) or being dropped here, so that the outer cframe owns what runs? When it is
 * dropped, rbx goes from the distance to the outer base to its negative, then to that base itself.
 */
static inline bool between_cframes(const struct walk *w, struct thread *t)
{
	u64 rbx = w->reg[DWREG_RBX], base = rbx;

	if (!walk_has(w, DWREG_RBX))
		return false;
	if (w->region.part == LUAJIT_ENTER)
		return (rbx & 7) == LINK_C || (rbx & 7) == LINK_CP;
	if (w->region.part != LUAJIT_LEAVE || rbx & 3)
		return false;
	if (rbx < DELTA_MAX)
		base = w->reg[DWREG_RDX] - (rbx & ~7ull);
	else if (rbx >> 63)
		base = -rbx;
	if (in_stack(t, base))
		t->base = base;
	return true;
}

/* Starts on the frames of a lua_State at its running function; cf is the cframe that the native stack shows. */
WALK_GLOBAL int luajit_top(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	struct thread t;
	u64 prev;
	int stop;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm)
		return STOP_ARENA;
	c = cursor_of(w);
	stop = read_thread(w, vm, c->key, &t);
	if (stop)
		return stop;
	if (t.cframe == cf && !between_cframes(w, &t))
		return push_running(w, vm, c, &t, cf);
	c->at = t.base - 8;
	c->more[1] = PENDING;
	if (t.cframe != cf)
		return luajit_own(w, t.cframe);
	if (!walk_stack(w, cf + vm->cf_prev, &prev))
		return STOP_STACK_ABSENT;
	return luajit_own(w, prev);
}

WALK_GLOBAL int luajit_interpreter(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	u64 l;
	int stop;

	WALK_CHECK(w);
	vm = vm_config(w);
	if (!vm)
		return STOP_ARENA;
	if (!w->vm_state) {
		if (!walk_stack(w, cf + vm->cf_l, &l))
			return STOP_STACK_ABSENT;
		if (!select_cursor(w, l))
			return STOP_VM_BROKEN;
		stop = cursor_of(w)->at ? STOP_NONE : luajit_top(w, cf);
		if (stop)
			return stop;
	}
	return luajit_frames(w, cf);
}

/*
 * Starts on the frames of a running trace: r14 leads to the global state, that to the lua_State and its cframe. The stack
 * pointer tells nothing on a trace, so it is set to that cframe. False: this is not LuaJIT's code.
 */
WALK_GLOBAL int luajit_trace_top(struct walk *w)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	struct thread t;
	u64 g, l, base, sp;
	u32 i;

	WALK_CHECK(w);
	vm = vm_config(w);
	g = w->reg[DWREG_R14];
	if (!vm || !walk_has(w, DWREG_R14))
		return 0;
	g -= vm->g2disp;
	if (!read_word(w, g + vm->g_cur_l, &l) || !read_word(w, g + vm->g_jit_base, &base) ||
		read_thread(w, vm, l, &t) || t.g != g)
		return 0;
	sp = w->reg[REG_SP];
	for (i = 0; i < UNLINKED_MAX && t.cframe && t.cframe < sp; i++) /* those that work on behalf of the exit */
		if (!read_word(w, t.cframe + vm->cf_prev, &t.cframe))
			return 0;
	if (t.cframe < sp || t.cframe & 7 || !select_cursor(w, l))
		return 0;
	w->reg[REG_SP] = t.cframe;
	c = cursor_of(w);
	if (c->at)
		return 1;
	c->at = (in_stack(&t, base) ? base : t.base) - 8;
	c->more[0] = t.cframe;
	return luajit_push(w, c->at, 0, in_stack(&t, base) ? LUAJIT_JIT : 0) == STOP_NONE;
}

/* A trace runs in the cframe of the interpreter that started it, which saved the registers that traces use besides. */
static inline int leave_trace(struct walk *w)
{
	u64 cf = w->reg[REG_SP], words[5];
	u64 where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_VM | (w->leaf ? 0 : FRAME_RETADDR), w->reg[REG_PC]);

	if (!walk_push(w, where, w->region.module))
		return STOP_DEPTH;
	if (!walk_read(w, words, sizeof(words), cf + 40) || !walk_stack(w, cf - 8, &w->reg[DWREG_R13]) ||
		!walk_stack(w, cf, &w->reg[DWREG_R12]))
		return STOP_STACK_ABSENT;
	w->reg[DWREG_R14] = words[0];
	w->reg[DWREG_R15] = words[1];
	w->reg[DWREG_RBX] = words[2];
	w->reg[DWREG_RBP] = words[3];
	w->reg[REG_PC] = words[4];
	w->reg[REG_SP] = cf + 80;
	w->valid = ARCH_SAVED_MASK | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	w->flags = 0;
	return STOP_NONE;
}

WALK_GLOBAL int luajit_trace(struct walk *w)
{
	int stop;

	WALK_CHECK(w);
	if (!w->vm_state && !luajit_trace_top(w)) {
		w->vm_state = 0;
		return native_step(w, 0);
	}
	stop = luajit_frames(w, w->reg[REG_SP]);
	if (stop != FRAMES_DONE)
		return stop;
	w->vm_state = 0;
	return leave_trace(w);
}

/* Helpers of the VM that the interpreter calls leave rdx alone: it still is the running function's base. */
static inline int step_glue(struct walk *w)
{
	u32 rdx = w->leaf << DWREG_RDX;
	int stop = native_step(w, FRAME_VM);

	w->valid |= rdx;
	return stop;
}

WALK_STEP int luajit_step(struct walk *w)
{
	u64 cf;
	int stop;

	WALK_CHECK(w);
	cf = w->reg[REG_SP];
	switch (w->region.part) {
	case LUAJIT_GLUE:
		return step_glue(w);
	case LUAJIT_EXIT:
	case LUAJIT_TRACE:
		return luajit_trace(w);
	case LUAJIT_INTERP_8:
		cf += 8;
		break;
	case LUAJIT_INTERP_16:
		cf += 16;
		break;
	}
	stop = luajit_interpreter(w, cf);
	if (stop != FRAMES_DONE)
		return stop;
	w->vm_state = 0;
	return native_step(w, FRAME_VM);
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where a walk resumes that was lost in native code called by Lua. Nothing leads from a thread to its VM. So each walk
 * caches which global_State it met on this thread, and where its cframe was (struct walk_cache). The next walk that is
 * lost looks there: the running lua_State has its innermost cframe, which has that lua_State, and must be above the
 * place where the walk was lost and near the last one that was seen. Before the first walk, the VM is the one that was
 * found in memory, if there is only one, and the cframe must be near that place.
 */
#include "walk.h"
#include "luajit_thread_walk.h"

#define LJ_RESUME_CFRAMES 8          /* from the innermost outwards: those of callbacks, whose frames were seen */
#define LJ_RESUME_FAR     (1u << 20) /* bytes: another thread's stack may be further up */
#define LJ_RESUME_NEAR    (1u << 17)
#define LJ_CACHED_FRAME   0x9e3779b97f4a7c15ull

/* The cell of a thread: of its global_State, or (which: LJ_CACHED_FRAME) of its last cframe. */
static inline u64 lj_cache_key(const struct walk *w, u64 which)
{
	return walk_mix(walk_mix(which, w->thread_pointer), w->region.vm);
}

static inline bool lj_recall(struct walk *w, u64 which, u64 *ret)
{
	u64 key = lj_cache_key(w, which);
	struct walk_cache *cached = walk_cache(w, (u32)(key >> 32));

	if (!cached || cached->key != key)
		return false;
	*ret = cached->value;
	return true;
}

static inline void lj_keep(struct walk *w, u64 which, u64 value)
{
	u64 key = lj_cache_key(w, which);
	struct walk_cache *cached = walk_cache(w, (u32)(key >> 32));

	if (!cached || (cached->key == key && cached->value == value))
		return;
	cached->key = key;
	cached->value = value;
}

LUAJIT_SHARED int luajit_note(struct walk *w, u64 g, u64 cf)
{
	WALK_CHECK(w);
	if (w->thread_pointer) {
		lj_keep(w, 0, g);
		lj_keep(w, LJ_CACHED_FRAME, cf);
	}
	return 0;
}

/* The innermost cframe that lies above the stack pointer, 0 if there is none on this stack. */
static inline u64 lj_find_cframe(struct walk *w, const struct luajit_vm *vm, u64 cf, u64 l, u64 last)
{
	u64 sp = w->reg[REG_SP], word;
	u32 i;

	for (i = 0; i < LJ_RESUME_CFRAMES && cf && cf < sp; i++) {
		if (!walk_read(w, &cf, sizeof(cf), cf + vm->cf_prev))
			return 0;
		cf &= LUAJIT_CFRAME_MASK;
	}
	if (cf < sp || cf & 7 || cf - sp > LJ_RESUME_FAR || (cf > last ? cf - last : last - cf) > LJ_RESUME_FAR)
		return 0;
	if (!walk_read(w, &word, sizeof(word), cf + (vm->cf_l & ~7u)))
		return 0;
	return (vm->gc64 ? word : lj_half(word, vm->cf_l)) == l ? cf : 0;
}

/*
 * Called from a trace: on as if its exit handler had called, which finds the trace's frames by the VM's state. Else as
 * a function that the interpreter has called.
 */
WALK_STEP int luajit_resume(struct walk *w)
{
	const struct luajit_vm *vm;
	struct lj_thread t;
	u64 g, l, base, cf, last;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!w->thread_pointer || !lj_recall(w, 0, &g) || !lj_recall(w, LJ_CACHED_FRAME, &last)) {
		g = vm->only;
		last = w->reg[REG_SP] - LJ_RESUME_FAR + LJ_RESUME_NEAR;
	}
	if (!g || !lj_read_running(w, vm, g, &l, &base) || lj_read_thread(w, vm, l, &t) || t.g != g || !t.steady)
		return STOP_VM_UNKNOWN;
	cf = lj_find_cframe(w, vm, t.cframe, l, last);
	if (!cf)
		return STOP_VM_UNKNOWN;
	w->valid = 1u << REG_SP | 1u << REG_PC;
	if (cf == t.cframe && lj_in_stack(&t, base)) {
		if (!vm->gc64)
			return STOP_VM_UNKNOWN;
		w->reg[REG_PC] = vm->resume_exit;
		w->reg[DWREG_R14] = g + vm->g2disp;
		w->valid |= 1u << DWREG_R14;
	} else {
		w->reg[REG_PC] = vm->resume_interp;
		w->reg[REG_SP] = cf;
	}
	return w->reg[REG_PC] ? STOP_NONE : STOP_VM_UNKNOWN;
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From one of Go's stacks to another: the thread's own (g0's), on which the runtime and C run, and the goroutine's. */
#include <walk.h>

#include "go.h"

/* A word of the m that this thread is, and the m. */
static inline bool go_m(struct walk *w, const struct go_config *go, u32 member, u64 *m, u64 *value)
{
	u64 g;

	return w->thread_pointer && walk_read(w, &g, sizeof(g), w->thread_pointer + (u64)go->tls) && g &&
	       walk_read(w, m, sizeof(*m), g + go->g_m) && *m && walk_read(w, value, sizeof(*value), *m + member);
}

static inline bool go_push(struct walk *w)
{
	u32 flags = w->flags | (w->leaf ? 0 : FRAME_RETADDR);

	w->flags = 0;
	return walk_push(w, frame_where(FRAME_NATIVE, RUNTIME_NATIVE, flags, w->reg[REG_PC]), w->region.module);
}

/* Goes on elsewhere: leaf as in struct walk. */
static inline int go_enter(struct walk *w, u64 pc, u64 sp, u32 leaf)
{
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = sp;
	w->valid = 1u << REG_PC | 1u << REG_SP;
	w->leaf = leaf;
	return STOP_NONE;
}

/* Goes on where the thread's goroutine was suspended. */
static inline int go_resume(struct walk *w, const struct go_config *go, u32 leaf)
{
	u64 m, curg, at[2];

	if (!go_m(w, go, go->m_curg, &m, &curg))
		return STOP_VM_ABSENT;
	if (!curg)
		return leaf ? STOP_VM_BROKEN : STOP_ROOT_RUNTIME;
	if (!walk_read(w, at, sizeof(at), curg + go->g_sched))
		return STOP_VM_ABSENT;
	return at[0] && at[1] ? go_enter(w, at[1], at[0], leaf) : STOP_VM_BROKEN;
}

static inline int go_systemstack(struct walk *w, const struct go_config *go)
{
	if (!go_push(w))
		return STOP_DEPTH;
	w->vm_state |= GO_HIDE_NEXT;
	return go_resume(w, go, 1);
}

/*
 * Once the scheduler has run, curg is not who called, or is only just becoming it. recovery() has it go on at the call
 * of deferreturn(), and not behind a call.
 */
static inline int go_suspended(struct walk *w, const struct go_config *go)
{
	int stop;

	if (!go_push(w))
		return STOP_DEPTH;
	stop = w->vm_mark & GO_SCHEDULED ? STOP_ROOT_RUNTIME : go_resume(w, go, 0);
	if (stop == STOP_NONE && !native_called(w, w->reg[REG_PC]))
		w->leaf = 1;
	return stop;
}

/* Called by a goroutine, it leaves that and how deep its stack was, which may have been copied elsewhere since. */
WALK_GLOBAL int go_asmcgocall(struct walk *w, u32 g_at, u32 depth_at, u64 resume)
{
	u64 g, depth, high = 0, sp;

	WALK_CHECK(w);
	sp = w->reg[REG_SP];
	if (!walk_stack(w, sp + g_at, &g) || !walk_stack(w, sp + depth_at, &depth))
		return STOP_STACK_ABSENT;
	if (g && !walk_read(w, &high, sizeof(high), g + 8))
		return STOP_VM_ABSENT;
	w->vm_state |= GO_HIDE_NEXT;
	return go_enter(w, resume, g ? high - depth : depth, 1);
}

static inline int go_from_c(struct walk *w, const struct go_config *go)
{
	u32 leaf = w->leaf, part = w->region.part;
	u64 resume;

	if (!go_push(w))
		return STOP_DEPTH;
	if (!leaf)
		return go_asmcgocall(w, go->asm_g, go->asm_depth, go->resume);
	w->vm_state |= GO_HIDE_NEXT;
	if (part == GO_ASMCGOCALL)
		return go_resume(w, go, 1);
	resume = go->resume;
	return walk_has(w, DWREG_RDX) && w->reg[DWREG_RDX] > w->reg[REG_SP] ? go_enter(w, resume, w->reg[DWREG_RDX], 1)
	                                                                    : STOP_VM_BROKEN;
}

/* Its frame is on both stacks: the one on g0's was called from C, and holds that of the callback before. */
static inline int go_callback(struct walk *w, const struct go_config *go)
{
	u32 i = walk_cursor(w, go_callback_key(w->region.vm));
	u64 m, g0, sp;

	WALK_BARRIER(i);
	if (i >= WALK_CURSORS)
		return STOP_VM_BROKEN;
	if (w->cursor[i].at) {
		if (!walk_read(w, &sp, sizeof(sp), w->cursor[i].at))
			return STOP_STACK_ABSENT;
	} else if (!go_m(w, go, go->m_g0, &m, &g0) || !walk_read(w, &sp, sizeof(sp), g0 + go->g_sched)) {
		return STOP_VM_ABSENT;
	}
	w->cursor[i].at = sp;
	w->reg[REG_SP] = sp;
	return native_step(w, 0);
}

static inline int go_jump(struct walk *w, const struct go_config *go)
{
	u64 g, pc, sp = w->reg[REG_SP];

	if (!go_push(w))
		return STOP_DEPTH;
	if (!w->thread_pointer || !walk_read(w, &g, sizeof(g), w->thread_pointer + (u64)go->tls) ||
	        !walk_read(w, &pc, sizeof(pc), g + go->g_sched + 8))
		return STOP_VM_ABSENT;
	return go_enter(w, pc, sp, 1);
}

/* The goroutine's stack may lie below the one that it left: its stack pointer is put back first. */
static inline int go_kept(struct walk *w, u32 reg)
{
	if (!walk_has(w, reg))
		return go_push(w) ? STOP_REG_LOST : STOP_DEPTH;
	WALK_BARRIER(reg);
	if (reg < ARCH_NREGS)
		w->reg[REG_SP] = w->reg[reg];
	return native_step(w, 0);
}

/* Where labels lie, and how many: 0 if that is not known. */
static inline u64 go_labels_at(struct walk *w, u64 labels, u32 map, u64 *base)
{
	u64 head[3] = {0}; /* kernels before 6.3 let no program read what was not written */

	if (!walk_read(w, head, map ? 8 : 16, labels))
		return 0;
	*base = head[0];
	if (!map)
		return head[1];
	if (!walk_read(w, head, sizeof(head), *base) || head[1] >> 8 & 0xff) /* hmap.B: more than one bucket */
		return 0;
	*base = head[2];
	return head[0];
}

/* Adds a label to the mix in scratch[GO_LABEL_WORDS]. */
WALK_GLOBAL int go_add_label(struct walk *w, u64 key, u64 value)
{
	u64 size;

	WALK_CHECK(w);
	if (!walk_read(w, w->scratch, 16, key) || !walk_read(w, w->scratch + 2, 16, value))
		return false;
	size = w->scratch[3];
	for (u32 k = 4; k < GO_LABEL_WORDS; k++)
		w->scratch[k] = 0;
	WALK_BARRIER(size);
	if (size > GO_LABEL_BYTES)
		size = GO_LABEL_BYTES;
	if (!walk_read(w, w->scratch + 4, (u32)size, w->scratch[2]))
		return false;
	w->scratch[GO_LABEL_WORDS] = go_label_mix(w->scratch[GO_LABEL_WORDS], w->scratch);
	return true;
}

/* The mix of a goroutine's labels, in scratch[GO_LABEL_WORDS]. */
WALK_GLOBAL int go_labels(struct walk *w, u64 labels, u32 map)
{
	u64 base = 0, n;

	WALK_CHECK(w);
	n = go_labels_at(w, labels, map, &base);
	w->scratch[GO_LABEL_WORDS] = 0;
	for (u32 i = 0; i < GO_LABELS_MAX && i < n; i++)
		if (!go_add_label(w, go_label_key(base, map, i), go_label_value(base, map, i)))
			return false;
	return n && n <= GO_LABELS_MAX;
}

static inline bool go_push_told(struct walk *w, u32 flags, u64 addr, u64 detail)
{
	return !addr || walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_GO, flags, addr), detail);
}

/* What lies outside of the goroutine's outermost function. */
static inline int go_root(struct walk *w, const struct go_config *go)
{
	u64 m, g, value;

	if (!go_push(w))
		return STOP_DEPTH;
	if (!go_m(w, go, go->m_curg, &m, &g) || !g)
		return STOP_ROOT;
	if (go->details & GO_DETAIL_CREATOR && walk_read(w, &value, sizeof(value), g + go->g_gopc) &&
	        !go_push_told(w, FRAME_RETADDR, value, GO_CREATED))
		return STOP_DEPTH;
	if (go->details & GO_DETAIL_LABELS && walk_read(w, &value, sizeof(value), g + go->g_labels) && value &&
	        go_labels(w, value, go->labels_map) &&
	        !go_push_told(w, 0, value, w->scratch[GO_LABEL_WORDS] << 32 | GO_LABELS))
		return STOP_DEPTH;
	if (go->details & GO_DETAIL_NUMBER && walk_read(w, &value, sizeof(value), g + go->g_goid) &&
	        !go_push_told(w, FRAME_THREAD, value, GO_GOROUTINE))
		return STOP_DEPTH;
	return STOP_ROOT;
}

WALK_STEP int go_step(struct walk *w)
{
	const struct go_config *go;
	u32 hide;

	WALK_CHECK(w);
	go = walk_arena(w, w->region.vm);
	if (!go)
		return STOP_ARENA;
	hide = w->vm_state & GO_HIDE_NEXT ? NATIVE_NO_FRAME : 0;
	w->vm_state &= ~GO_HIDE_NEXT;
	if (w->region.part >= GO_KEPT)
		return go_kept(w, w->region.part - GO_KEPT);
	switch (w->region.part) {
	case GO_SYSTEMSTACK:
		return go_systemstack(w, go);
	case GO_SUSPENDED:
		return go_suspended(w, go);
	case GO_ASMCGOCALL:
	case GO_ASMCGOCALL_G0:
		return go_from_c(w, go);
	case GO_GOGO:
		return go_jump(w, go);
	case GO_CALLBACK:
		return go_callback(w, go);
	case GO_ROOT:
		return go_root(w, go);
	case GO_SCHEDULE:
		w->vm_mark |= GO_SCHEDULED;
		return native_step(w, 0);
	default:
		return native_step(w, hide);
	}
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: frames of a virtual thread that are in the heap, in the StackChunks of its Continuation (21
 * on), laid out as on a stack with two differences: links of rbp, and the sender that an interpreted frame stores, are
 * distances in words from where they are stored (stackChunkFrameStream_x86.inline.hpp;
 * continuationFreezeThaw_x86.inline.hpp). The chunk's sp leads to the innermost frame, whose pc and rbp are below it.
 * Its callees, on the stack, return to a barrier.
 *
 * While a walk is in a chunk, vm_state is HS_FROZEN and the number of a cursor: key is the JavaThread, `at` the end of
 * this chunk's frames, more[0] the chunk, more[1] the ContinuationEntry (continuationEntry.hpp: parent, cont, chunk),
 * which is in the frame of enterSpecial. After the last chunk the walk goes on there. more[1] is 0 if no thread has the
 * continuation (hotspot_tasks.c): the walk then is at its root.
 */
#include "hotspot_objects.h"

#define HS_FROZEN       0x4a00u
#define ENTRIES_MAX     4 /* continuations within each other */
#define CHUNK_WORDS_MAX (1u << 24)
#define ENTRY_PARENT    8 /* of a ContinuationEntry; a word is before it, in all builds of 21 to 28 */
#define ENTRY_CONT      16
#define LOCALS_MAX      64 /* words of an interpreted method's */
#define ALIGNED_MAX     16
#define THAW_PUSHED     32 /* by the barrier's stub below the room for what is thawed */
#define THAW_KEEPS      3  /* bytes of mov rbx, rax behind what thaws */
#define THAW_EXTRA      4  /* words of it beside the chunk's maxThawingSize (continuationFreezeThaw.cpp: thaw_size()) */

static inline bool hs_is_frozen(const struct walk *w)
{
	return (w->vm_state & ~(WALK_CURSORS - 1)) == HS_FROZEN;
}

static inline struct walk_cursor *hs_chunk(struct walk *w)
{
	return &w->cursor[w->vm_state & (WALK_CURSORS - 1)];
}

/* A field of the object that is in scratch. */
static inline u32 hs_chunk_field(const struct walk *w, u32 at)
{
	return (u32)(w->scratch[(at >> 3) & (WALK_SCRATCH_WORDS - 1)] >> (at & 4) * 8);
}

/* FLAG_HAS_INTERPRETED_FRAMES of the chunk in scratch (stackChunkOop.hpp). It counts as set if its place is unknown. */
static inline bool hs_is_mixed(const struct walk *w, const struct hotspot_frozen *f)
{
	return !f->flags || hs_chunk_field(w, f->flags) >> (f->flags & 3) * 8 & 1;
}

/* Is what scratch holds a StackChunk? Something else is there if a collector has moved it. */
static inline bool hs_is_chunk(const struct walk *w, const struct hotspot_frozen *f)
{
	if (f->klass_shift >= 32)
		return w->scratch[0] >> (f->klass_shift & 63) == f->klass;
	return f->klass_shift ? (u32)w->scratch[1] == f->klass : w->scratch[1] == f->klass;
}

/*
 * The registers at a frame of the chunk: its sp, and where its pc and the distance to its rbp are stored. The barrier's
 * address is only there while frames are being copied.
 */
WALK_GLOBAL int hotspot_frozen_caller(struct walk *w, u64 sp, u64 fp_at)
{
	const struct hotspot_vm *vm;
	u64 pc, words;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	if (!walk_stack(w, fp_at, &words) || !walk_stack(w, fp_at + 8, &pc))
		return STOP_STACK_ABSENT;
	if (pc == vm->return_barrier)
		return STOP_VM_FROZEN;
	w->reg[REG_SP] = sp;
	w->reg[REG_PC] = pc;
	w->reg[REG_FP] = fp_at + words * 8;
	w->valid = (w->valid & 1u << DWREG_R15) | 1u << REG_SP | 1u << REG_PC | 1u << REG_FP;
	w->leaf = 0;
	w->flags = 0;
	return STOP_NONE;
}

/* All frames of this chunk are through: the next step, at the barrier, finds the next. */
static inline int hs_chunk_ends(struct walk *w, const struct hotspot_vm *vm)
{
	w->reg[REG_PC] = vm->return_barrier;
	w->leaf = 0;
	return STOP_NONE;
}

/* The caller of a frozen compiled frame. */
WALK_GLOBAL int hotspot_leave_frozen(struct walk *w, u64 cfa)
{
	const struct hotspot_vm *vm;
	u64 end;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	end = hs_chunk(w)->at;
	if (cfa <= w->reg[REG_SP] || cfa > end)
		return STOP_VM_FROZEN;
	return cfa == end ? hs_chunk_ends(w, vm) : hotspot_frozen_caller(w, cfa, cfa - 16);
}

/* A frozen interpreted frame. Locals, senders and rbp are given as words from the frame's rbp. */
WALK_GLOBAL int hotspot_frozen_interpreted(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 fp, end, method, bcp, sender, locals;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	fp = w->reg[REG_FP];
	end = hs_chunk(w)->at;
	if (!walk_has(w, REG_FP) || fp < w->reg[REG_SP] || fp >= end)
		return STOP_VM_FROZEN;
	if (!walk_stack(w, fp - vm->bcp, &bcp) || !walk_stack(w, fp - vm->bcp + 8, &locals) ||
	        !walk_stack(w, fp - 24, &method) || !walk_stack(w, fp - 8, &sender))
		return STOP_STACK_ABSENT;
	stop = hs_push_method(w, method, bcp, 0);
	if (stop)
		return stop;
	if (fp + (locals + 1) * 8 >= end)
		return hs_chunk_ends(w, vm);
	sender = fp + sender * 8;
	return sender > fp && sender < end ? hotspot_frozen_caller(w, sender, fp) : STOP_VM_FROZEN;
}

/* Reads the chunk at this address, or where a collector has moved it, into scratch. STOP_VM_FROZEN: it is no chunk. */
static inline int hs_read_chunk(struct walk *w, const struct hotspot_frozen *f, u64 chunk)
{
	if (!chunk || chunk & 7 || !walk_read(w, w->scratch, sizeof(w->scratch), chunk))
		return STOP_VM_FROZEN;
	if ((w->scratch[0] & MARK_FORWARDED) == MARK_FORWARDED) {
		chunk = w->scratch[0] & ~7ull;
		if (!walk_read(w, w->scratch, sizeof(w->scratch), chunk))
			return STOP_VM_FROZEN;
	}
	hs_chunk(w)->more[0] = chunk;
	return hs_is_chunk(w, f) ? STOP_NONE : STOP_VM_FROZEN;
}

/* Has the stub of the barrier made room below the entry, to thaw frames of the chunk? */
static inline bool hs_is_thawing(struct walk *w, const struct hotspot_vm *vm)
{
	return w->reg[REG_PC] != vm->return_barrier && hs_chunk(w)->more[1] - w->reg[REG_SP] > THAW_PUSHED + 8;
}

/*
 * It makes room for all frames of the chunk, in multiples of 16 bytes. Returns by how many words of them, or one more,
 * the chunk in scratch is smaller by now: they are in between, and on no stack. 0: by none. ~0: not known.
 */
static inline u32 hs_thawed(struct walk *w, const struct hotspot_vm *vm)
{
	u64 room = (hs_chunk(w)->more[1] - w->reg[REG_SP] - THAW_PUSHED) / 8;
	u32 words = hs_chunk_field(w, vm->frozen.max_thawing) + THAW_EXTRA;

	if (w->leaf) /* of the stub itself: it has not called yet what thaws, or hotspot_lands() */
		return vm->barrier_landing > HOTSPOT_LANDING ? 0 : ~0u;
	return room > words + 1 ? (u32)(room - words) : 0;
}

/* Is an interpreted frame at fp, with a position in the bytecode of its method? */
static inline bool hs_is_interpreted(struct walk *w, const struct hotspot_vm *vm, u64 fp)
{
	u64 method, bcp, constants;
	u16 size;

	return walk_read(w, &method, 8, fp - 24) && walk_read(w, &bcp, 8, fp - vm->bcp) &&
	       walk_read(w, &constants, 8, method + vm->method_const) &&
	       walk_read(w, &size, 2, constants + vm->const_code_size) && bcp - constants - vm->const_size < size;
}

/*
 * Is an interpreted frame at fp that is the last of its chunk? Its locals reach the end, and it begins about where the
 * chunk's frames did before (maxThawingSize has words of alignment, too). -1: the memory cannot be read.
 */
WALK_GLOBAL int hotspot_is_last(struct walk *w, u64 fp, u64 end, u32 words)
{
	const struct hotspot_vm *vm;
	u64 sp, locals;

	WALK_CHECK(w);
	vm = hs_vm_here(w);
	if (!vm || !walk_read(w, &sp, 8, fp - 16) || !walk_read(w, &locals, 8, fp - vm->bcp + 8))
		return -1;
	sp = words - (end - fp) / 8 + sp;
	return sp < ALIGNED_MAX && locals < LOCALS_MAX && fp + (locals + 1) * 8 >= end && hs_is_interpreted(w, vm, fp);
}

/* Searches a chunk downwards from its end for its last interpreted frame. Returns that frame's rbp; 0: not found. */
WALK_GLOBAL u64 hotspot_last_fp(struct walk *w, u64 end, u32 words)
{
	u64 fp = end - 16;
	int is = 0;

	WALK_CHECK(w);
	for (u32 i = 0; i < LOCALS_MAX && !is; i++, fp -= 8)
		is = hotspot_is_last(w, fp, end, words);
	return is > 0 ? fp + 8 : 0;
}

/* The interpreted frame at fp, in a chunk. */
static inline int hs_at_interpreted(struct walk *w, const struct hotspot_vm *vm, u64 fp)
{
	w->reg[REG_SP] = w->reg[REG_FP] = fp;
	w->reg[REG_PC] = vm->interpreter_low + 1;
	w->valid = (w->valid & 1u << DWREG_R15) | 1u << REG_SP | 1u << REG_PC | 1u << REG_FP;
	w->leaf = 0;
	w->flags = 0;
	return STOP_NONE;
}

/*
 * Does the chunk in scratch belong to the continuation of this walk? Only asked of coloured references: others cannot
 * lead to another object.
 */
static inline bool hs_is_own(struct walk *w, const struct hotspot_frozen *f)
{
	if (f->oops != HOTSPOT_OOP_COLOURED || !f->cont)
		return true;
	return hotspot_z_object(w, w->scratch[(f->cont >> 3) & (WALK_SCRATCH_WORDS - 1)]) == hs_chunk(w)->more[2];
}

/*
 * Frames that were removed from the chunk are still in its memory, below the new innermost one at sp: an interpreted
 * one directly there, compiled ones at a distance of as many words as the chunk became smaller, which is even. An empty
 * chunk is not marked as mixed any more (continuationFreezeThaw.cpp: finish_thaw()).
 */
WALK_GLOBAL int hotspot_thawed(struct walk *w, u64 sp, u32 words, u32 mixed)
{
	const struct hotspot_vm *vm;
	u64 fp = sp - 16, pc, end;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	end = hs_chunk(w)->at;
	if (mixed || sp == end) {
		if (sp == end)
			fp = hotspot_last_fp(w, end, words);
		if (fp && hs_is_interpreted(w, vm, fp))
			return hs_at_interpreted(w, vm, fp);
		if (mixed &&
		        (sp == end || !walk_read(w, &pc, 8, sp - 8) || pc - vm->interpreter_low < vm->interpreter_size))
			words = 0;
	}
	words &= ~1u;
	if (!words || !walk_read(w, &pc, 8, sp - (u64)words * 8 - 8) || pc <= vm->cache_low || pc >= vm->cache_high) {
		w->lost = STOP_VM_FROZEN;
		words = 0;
	}
	sp -= (u64)words * 8;
	return sp == end ? hs_chunk_ends(w, vm) : hotspot_frozen_caller(w, sp, sp - 16);
}

/* To the innermost frame of a chunk; if it has none, the next step looks at its parent. */
WALK_GLOBAL int hotspot_enter_chunk(struct walk *w, u64 stored, u32 freezing)
{
	const struct hotspot_vm *vm;
	u64 stack;
	u32 size, sp, bottom, thawed = 0;
	bool thawing;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	stop = hs_read_chunk(w, &vm->frozen, hs_object(w, &vm->frozen, stored));
	if (stop || !hs_is_own(w, &vm->frozen))
		return STOP_VM_FROZEN;
	size = hs_chunk_field(w, vm->frozen.size);
	sp = hs_chunk_field(w, vm->frozen.sp);
	bottom = hs_chunk_field(w, vm->frozen.bottom);
	bottom = vm->frozen.bottom_is_args ? size - bottom : bottom;
	if (size > CHUNK_WORDS_MAX || bottom > size || sp > bottom)
		return STOP_VM_FROZEN;
	thawing = hs_is_thawing(w, vm);
	if (thawing)
		thawed = hs_thawed(w, vm);
	if (thawing && sp == bottom && !thawed) /* its last frame is off, which the other field does not say yet */
		thawed = hs_chunk_field(w, vm->frozen.max_thawing);
	if (thawed > sp || (thawing && sp == bottom && !thawed)) {
		w->lost = STOP_VM_FROZEN;
		thawed = 0;
	}
	if (sp == bottom && !thawed)
		return hs_chunk_ends(w, vm);
	stack = hs_chunk(w)->more[0] + vm->frozen.stack;
	hs_chunk(w)->at = stack + (u64)bottom * 8;
	stack += (u64)sp * 8;
	if (thawed)
		return hotspot_thawed(w, stack, thawed, hs_is_mixed(w, &vm->frozen));
	if (!thawing)
		hotspot_frozen_twice(w, stack, freezing);
	stop = hotspot_frozen_caller(w, stack, stack - 16);
	w->flags = thawing ? FRAME_GUESS : 0; /* its fields change one after the other */
	return stop;
}

/* To enterSpecial's frame at an entry, which has called the whole continuation. */
static inline int hs_enter_special(struct walk *w, const struct hotspot_frozen *f, u64 entry)
{
	u64 pc = f->entry_pc;

	if (!entry || (!pc && !walk_read(w, &pc, sizeof(pc), f->entry_pc_at)) || !pc)
		return STOP_VM_FROZEN;
	w->reg[REG_SP] = entry;
	w->reg[REG_PC] = pc;
	w->valid = (w->valid & 1u << DWREG_R15) | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	w->flags = 0;
	w->vm_state = 0;
	return STOP_NONE;
}

/* The entry of the continuation that the stack pointer is in; 0: none. */
WALK_GLOBAL u64 hotspot_entry(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 entry = 0;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !walk_has(w, DWREG_R15) || !walk_read(w, &entry, 8, w->reg[DWREG_R15] + vm->frozen.cont_entry))
		return 0;
	for (u32 i = 0; i < ENTRIES_MAX && entry && entry < w->reg[REG_SP]; i++)
		if (!walk_read(w, &entry, 8, entry + ENTRY_PARENT))
			return 0;
	return entry - w->reg[REG_SP] <= FRAME_MAX ? entry : 0;
}

/* Out of line, because what the verifier knows of the number would multiply. */
WALK_GLOBAL u32 hotspot_cursor(struct walk *w)
{
	WALK_CHECK(w);
	return walk_cursor(w, w->reg[DWREG_R15]);
}

/*
 * The Continuation of an entry; 0: not known. With ZGC nothing shows whether the entry's reference, which is not in the
 * heap, is from before or after the object was moved (zStackWatermark.hpp). So it is read from the carrier's
 * Thread.cont, and its parents, one for each entry in between (Continuation.java: run()).
 */
WALK_GLOBAL u64 hotspot_continuation(struct walk *w, u64 entry)
{
	const struct hotspot_vm *vm;
	u64 at, cont;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return 0;
	if (vm->frozen.oops != HOTSPOT_OOP_COLOURED)
		return walk_read(w, &cont, 8, entry + ENTRY_CONT) ? hs_moved_to(w, cont) : 0;
	if (!walk_read(w, &at, 8, w->reg[DWREG_R15] + vm->frozen.thread_handle))
		return 0;
	cont = hs_z_follow(w, at);
	if (!cont || !walk_read(w, &at, 8, w->reg[DWREG_R15] + vm->frozen.cont_entry))
		return 0;
	cont = hs_z_follow(w, cont + vm->frozen.thread_cont);
	for (u32 i = 0; i < ENTRIES_MAX && cont && at != entry; i++) {
		cont = hs_z_follow(w, cont + vm->frozen.cont_parent);
		if (!walk_read(w, &at, 8, at + ENTRY_PARENT))
			return 0;
	}
	return at == entry ? cont : 0;
}

/* The barrier, reached from the stack: which continuation is this thread in? */
static inline int hs_open_continuation(struct walk *w, const struct hotspot_frozen *f, u64 *chunk, bool *freezing)
{
	u64 entry = hotspot_entry(w), cont, sp;
	u32 i = hotspot_cursor(w);

	if (!entry || i >= WALK_CURSORS || !walk_read(w, &sp, 8, w->reg[DWREG_R15] + f->last_java_sp))
		return STOP_VM_FROZEN;
	cont = hotspot_continuation(w, entry);
	if (!cont)
		return STOP_VM_FROZEN;
	*freezing = sp == entry; /* FreezeBase::unwind_frames() */
	w->vm_state = HS_FROZEN | i;
	hs_chunk(w)->more[1] = entry;
	hs_chunk(w)->more[2] = cont;
	return hs_load_oop(w, f, cont + f->tail, chunk) && hs_decode(f, *chunk) ? STOP_NONE : STOP_VM_FROZEN;
}

/* Frames that return to the barrier have their callers in the heap, and so have callees of the barrier's stub. */
WALK_GLOBAL int hotspot_barrier(struct walk *w)
{
	const struct hotspot_vm *vm;
	bool freezing = false;
	u64 chunk;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	if (!vm->frozen.stack)
		return STOP_VM_FROZEN;
	if (!hs_is_frozen(w)) {
		stop = hs_open_continuation(w, &vm->frozen, &chunk, &freezing);
		if (stop)
			return stop;
	} else if (!hs_load_oop(w, &vm->frozen, hs_chunk(w)->more[0] + vm->frozen.parent, &chunk)) {
		return STOP_VM_FROZEN;
	}
	if (hs_decode(&vm->frozen, chunk))
		return hotspot_enter_chunk(w, chunk, freezing);
	return hs_chunk(w)->more[1] ? hs_enter_special(w, &vm->frozen, hs_chunk(w)->more[1]) : STOP_ROOT_RUNTIME;
}

/* So many bytes before the last ret of a stub that thaws: what was thawed is at rbx, then at the stack pointer: sub
 * rsp, 16; pop rbp; ret. */
WALK_GLOBAL int hotspot_lands(struct walk *w, u64 left)
{
	u64 sp;

	WALK_CHECK(w);
	sp = left > HOTSPOT_LANDING ? w->reg[DWREG_RBX] : w->reg[REG_SP];
	if (!left)
		return hotspot_return(w, sp + 8, 0);
	if (left > 1) {
		sp -= 16;
		w->reg[REG_SP] = sp;
	}
	return hotspot_return(w, sp + 16, sp);
}

/* Called by enterSpecial, whose frame is above the stack pointer: what is thawed is not yet this thread's frame. */
WALK_GLOBAL int hotspot_mounts(struct walk *w)
{
	const struct hotspot_vm *vm;

	WALK_CHECK(w);
	vm = hs_vm(w);
	return vm ? hs_enter_special(w, &vm->frozen, hotspot_entry(w)) : STOP_ARENA;
}

/*
 * The stub that a preempted thread returns to (24 on). A callee's frame returns there when all frames of Java are in
 * the chunk. The stub itself leaves what was frozen for enterSpecial's frame and, with pop rbp; ret, that too.
 */
WALK_GLOBAL int hotspot_preempted(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 offset, sp;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	offset = w->reg[REG_PC] - vm->preempt;
	sp = w->reg[REG_SP];
	if (offset == vm->preempt_left)
		return hotspot_return(w, sp + 16, sp);
	if (offset == vm->preempt_left + 1)
		return hotspot_return(w, sp + 8, 0);
	return hs_enter_special(w, &vm->frozen, offset < vm->preempt_moved ? hotspot_entry(w) : sp);
}

/* The stubs that thaw: cont_thaw, called by enterSpecial, and the barrier behind it. */
static inline int hs_thaws(struct walk *w, const struct hotspot_vm *vm)
{
	u64 offset = w->reg[REG_PC] - vm->thaw;
	bool mounts = offset < vm->thaw_size;
	u64 left = mounts ? vm->thaw_size - 1 - offset : vm->thaws_size - offset;

	u32 landing = mounts ? vm->thaw_landing : vm->barrier_landing;

	if (w->leaf && landing > HOTSPOT_LANDING && left == landing + THAW_KEEPS) {
		w->reg[DWREG_RBX] = w->reg[DWREG_RAX];
		left = landing;
	}
	if (w->leaf && left <= landing)
		return hotspot_lands(w, left);
	return mounts ? hotspot_mounts(w) : hotspot_barrier(w);
}

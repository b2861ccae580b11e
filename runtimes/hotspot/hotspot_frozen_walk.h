/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Frames of a virtual thread that are in the heap still, in the StackChunks of its Continuation (21 on): part of hotspot_walk.c.
 * They lie there as on a stack, with two differences: links of rbp, and what an interpreted frame says of its sender, are
 * words from where they are kept (stackChunkFrameStream_x86.inline.hpp; continuationFreezeThaw_x86.inline.hpp). The chunk's sp leads
 * to the innermost of them, whose pc and rbp are below it. Their callees, on the stack, return to a barrier.
 *
 * While a walk is in a chunk, vm_state is HS_FROZEN and the number of a cursor: key the JavaThread, at where the frames of this
 * chunk end, more[0] the chunk, more[1] the ContinuationEntry (continuationEntry.hpp: parent, cont, chunk), which lies in the frame of
 * enterSpecial. There the walk goes on when all chunks are through.
 */
#define HS_FROZEN	 0x4a00u
#define ENTRIES_MAX	 4 /* continuations within each other */
#define CHUNK_WORDS_MAX	 (1u << 24)
#define Z_REMAPPED_SHIFT 12 /* of a coloured pointer (zAddress.hpp): the address follows the one bit of four that is set */
#define MARK_FORWARDED	 3  /* markWord.hpp: the rest is where the object is now */
#define ENTRY_PARENT	 8 /* of a ContinuationEntry; a word is before it, in all builds of 21 to 28 */
#define ENTRY_CONT	 16
#define LANDING		 5  /* bytes at the end of the barrier's stub, before ret */
#define THAW_PUSHED	 32 /* by the barrier's stub below the room for what is thawed */
#define THAW_EXTRA	 4  /* words of it beside the chunk's maxThawingSize (continuationFreezeThaw.cpp: thaw_size()) */

static inline bool hs_is_frozen(const struct walk *w)
{
	return (w->vm_state & ~(WALK_CURSORS - 1)) == HS_FROZEN;
}

static inline struct walk_cursor *hs_chunk(struct walk *w)
{
	return &w->cursor[w->vm_state & (WALK_CURSORS - 1)];
}

static inline u64 hs_uncolour(u64 pointer)
{
	u32 remapped = pointer >> Z_REMAPPED_SHIFT & 15;

	switch (remapped) {
	case 1:
		return pointer >> (Z_REMAPPED_SHIFT + 1);
	case 2:
		return pointer >> (Z_REMAPPED_SHIFT + 2);
	case 4:
		return pointer >> (Z_REMAPPED_SHIFT + 3);
	case 8:
		return pointer >> (Z_REMAPPED_SHIFT + 4);
	default:
		return 0;
	}
}

/* The reference at addr in the heap; 0: null, or unreadable. */
static inline u64 hs_load_oop(struct walk *w, const struct hotspot_frozen *f, u64 addr)
{
	u64 oop = 0;
	u32 low = 0;

	if (f->oops == HOTSPOT_OOP_NARROW)
		return walk_read(w, &low, 4, addr) && low ? f->oop_base + ((u64)low << (f->oop_shift & 63)) : 0;
	if (!walk_read(w, &oop, 8, addr))
		return 0;
	return f->oops == HOTSPOT_OOP_COLOURED ? hs_uncolour(oop) : oop;
}

/* A field of the object that is in scratch. */
static inline u32 hs_chunk_field(const struct walk *w, u32 at)
{
	return (u32)(w->scratch[(at >> 3) & (WALK_SCRATCH_WORDS - 1)] >> (at & 4) * 8);
}

/* Is what scratch holds a StackChunk? Something else is there if a collector has moved it. */
static inline bool hs_is_chunk(const struct walk *w, const struct hotspot_frozen *f)
{
	if (f->klass_shift >= 32)
		return w->scratch[0] >> (f->klass_shift & 63) == f->klass;
	return f->klass_shift ? (u32)w->scratch[1] == f->klass : w->scratch[1] == f->klass;
}

/* The registers at a frame of the chunk: its sp, and where its pc and the words to its rbp are kept. */
WALK_GLOBAL int hotspot_frozen_caller(struct walk *w, u64 sp, u64 fp_at)
{
	u64 pc, words;

	WALK_CHECK(w);
	if (!walk_stack(w, fp_at, &words) || !walk_stack(w, fp_at + 8, &pc))
		return STOP_STACK_ABSENT;
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

/* A frozen interpreted frame. Locals, senders and rbp are told as words from the frame's rbp. */
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

/* The chunk at this address, or where a collector has moved it, to scratch. STOP_VM_FROZEN: it is none. */
static inline int hs_read_chunk(struct walk *w, const struct hotspot_frozen *f, u64 chunk)
{
	if (chunk & 7 || !walk_read(w, w->scratch, sizeof(w->scratch), chunk))
		return STOP_VM_FROZEN;
	if ((w->scratch[0] & MARK_FORWARDED) == MARK_FORWARDED) {
		chunk = w->scratch[0] & ~7ull;
		if (!walk_read(w, w->scratch, sizeof(w->scratch), chunk))
			return STOP_VM_FROZEN;
	}
	hs_chunk(w)->more[0] = chunk;
	return hs_is_chunk(w, f) ? STOP_NONE : STOP_VM_FROZEN;
}

/*
 * The barrier's stub is just thawing frames (only its second call has so much room below the entry): has it taken them off
 * the chunk in scratch already? They are in between then, and on no stack.
 */
static inline bool hs_is_thawed(const struct walk *w, const struct hotspot_vm *vm, u64 entry)
{
	u64 sp = w->reg[REG_SP], room = entry - sp, words;

	if (w->reg[REG_PC] == vm->return_barrier || room <= THAW_PUSHED + 8)
		return false;
	words = hs_chunk_field(w, vm->frozen.max_thawing);
	return ((entry - (words + THAW_EXTRA) * 8) & ~15ull) - sp > THAW_PUSHED;
}

/* To the innermost frame of a chunk; if it has none, the next step looks at its parent. */
WALK_GLOBAL int hotspot_enter_chunk(struct walk *w, u64 chunk)
{
	const struct hotspot_vm *vm;
	u64 stack;
	u32 size, sp, bottom;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	stop = hs_read_chunk(w, &vm->frozen, chunk);
	if (stop)
		return stop;
	size = hs_chunk_field(w, vm->frozen.size);
	sp = hs_chunk_field(w, vm->frozen.sp);
	bottom = hs_chunk_field(w, vm->frozen.bottom);
	bottom = vm->frozen.bottom_is_args ? size - bottom : bottom;
	if (size > CHUNK_WORDS_MAX || bottom > size || sp > bottom)
		return STOP_VM_FROZEN;
	if (hs_is_thawed(w, vm, hs_chunk(w)->more[1]))
		w->lost = STOP_VM_FROZEN;
	if (sp == bottom)
		return hs_chunk_ends(w, vm);
	stack = hs_chunk(w)->more[0] + vm->frozen.stack;
	hs_chunk(w)->at = stack + (u64)bottom * 8;
	stack += (u64)sp * 8;
	return hotspot_frozen_caller(w, stack, stack - 16);
}

/* To enterSpecial's frame, which has called the whole continuation. */
static inline int hs_leave_chunks(struct walk *w, const struct hotspot_frozen *f)
{
	u64 pc;

	if (!walk_read(w, &pc, sizeof(pc), f->entry_pc_at) || !pc)
		return STOP_VM_FROZEN;
	w->reg[REG_SP] = hs_chunk(w)->more[1];
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

/* The barrier, reached from the stack: which continuation is this thread in? */
static inline int hs_open_continuation(struct walk *w, const struct hotspot_frozen *f, u64 *chunk)
{
	u64 entry = hotspot_entry(w), cont, sp;
	u32 i = walk_cursor(w, w->reg[DWREG_R15]);

	if (!entry || i >= WALK_CURSORS || !walk_read(w, &cont, 8, entry + ENTRY_CONT) ||
	        !walk_read(w, &sp, 8, w->reg[DWREG_R15] + f->last_java_sp))
		return STOP_VM_FROZEN;
	if (sp == entry) /* frames of the stack are just being frozen: they may be in the chunk, too */
		w->lost = STOP_VM_FROZEN;
	w->vm_state = HS_FROZEN | i;
	hs_chunk(w)->more[1] = entry;
	*chunk = hs_load_oop(w, f, cont + f->tail);
	return *chunk ? STOP_NONE : STOP_VM_FROZEN;
}

/* What returns to the barrier has its callers in the heap; so has what the barrier's stub calls. */
WALK_GLOBAL int hotspot_barrier(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 chunk;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	if (!vm->frozen.stack)
		return STOP_VM_FROZEN;
	if (!hs_is_frozen(w)) {
		stop = hs_open_continuation(w, &vm->frozen, &chunk);
		if (stop)
			return stop;
	} else {
		chunk = hs_load_oop(w, &vm->frozen, hs_chunk(w)->more[0] + vm->frozen.parent);
	}
	return chunk ? hotspot_enter_chunk(w, chunk) : hs_leave_chunks(w, &vm->frozen);
}

/*
 * The stub that thaws. Its last instructions, with the stack pointer at what was thawed: sub rsp, 16; pop rbp; ret.
 */
static inline int hs_in_barrier(struct walk *w, const struct hotspot_vm *vm)
{
	u64 sp = w->reg[REG_SP];
	u8 code = 0;

	if (!w->leaf || w->reg[REG_PC] - vm->return_barrier < vm->barrier_size - LANDING)
		return hotspot_barrier(w);
	if (!walk_read(w, &code, 1, w->reg[REG_PC]))
		return STOP_VM_ABSENT;
	if (code == 0xc3)
		return hs_return(w, sp + 8, 0);
	if (code != 0x5d) {
		sp -= 16;
		w->reg[REG_SP] = sp;
	}
	return hs_return(w, sp + 16, sp);
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: the caller of a compiled frame whose stack pointer may not be where the frame size counts
 * from. At calls of Java it is. At calls of the VM, and in a leaf, code may have made room for a moment: slow paths of
 * GC barriers save registers, C1 passes arguments on the stack, wrappers of native methods push theirs when they must
 * wait for a lock. Then the word at the expected place belongs to the frame itself, and is often an old return address.
 *
 * So the code behind the program counter shows how much stack it gives back, and a return address counts only if its
 * call leads to the nmethod whose caller is looked for.
 */

#define RESTORES_MAX    48 /* instructions that load what was saved */
#define OPCODE_BYTES    8
#define METHOD_NONE     1 /* code without a method, or that passes a call on */
#define METHOD_ABSENT   2
#define PUSHED_MAX      4096 /* bytes, by a wrapper of a native method */
#define FRAMELESS_WORDS 32   /* that an intrinsic pushes: registers of arguments, below the return address */
#define FRAMELESS_TRIES 4    /* words that look like one */
#define ENTRY_FRAME_MAX 8192 /* bytes from a frame of call_stub's to its rbp: arguments among them */

/* CALL_ABSENT: memory could not be read. CALL_INTERPRETED: from a method that was interpreted at some time. */
enum call { CALL_ABSENT = -1, CALL_NONE, CALL_MAYBE, CALL_INTERPRETED, CALL_HERE };

#define RESTORE_TAKES      0x80  /* hs_restores(): a word */
#define RESTORE_GIVES_BACK 0x100 /* in bytes << 9 */

/* Byte i of the code in scratch. */
static inline u32 hs_code(const struct walk *w, u32 i)
{
	return ((const u8 *)w->scratch)[i & (CODE_BYTES - 1)];
}

/* The length of an operand [rsp + x] whose ModRM is at i; 0: it is another. */
static inline u32 hs_slot_length(const struct walk *w, u32 i)
{
	u32 mode = hs_code(w, i) >> 6;

	if ((hs_code(w, i) & 7) != 4 || hs_code(w, i + 1) != 0x24)
		return 0;
	return !mode ? 2 : mode == 1 ? 3 : mode == 2 ? 6 : 0;
}

static inline u32 hs_load_length(const struct walk *w, u32 opcode)
{
	u32 slot = hs_slot_length(w, opcode + 1);

	return slot ? opcode + 1 + slot : 0;
}

/* Loads of vector and mask registers from [rsp + x], in all encodings; vzeroupper. 0: none of these. */
static inline u32 hs_vector_length(const struct walk *w)
{
	u32 a = hs_code(w, 0), rex = (hs_code(w, 1) & 0xf0) == 0x40;

	if (a == 0xc5)
		return hs_code(w, 2) == 0x77 ? 3 : hs_load_length(w, 2);
	if (a == 0xc4)
		return hs_load_length(w, 3);
	if (a == 0x62)
		return hs_load_length(w, 4);
	return (a == 0xf3 || a == 0xf2 || a == 0x66) && hs_code(w, 1 + rex) == 0x0f ? hs_load_length(w, 2 + rex) : 0;
}

/* Room that is given back by the instruction in scratch: pop, add rsp, lea rsp. In bytes << 9 | RESTORE_GIVES_BACK |
 * length; 0: none. */
static inline u32 hs_gives_back(const struct walk *w)
{
	u32 a = hs_code(w, 0), b = hs_code(w, 1), c = hs_code(w, 2);

	if ((a & 0xf8) == 0x58)
		return 8 << 9 | RESTORE_GIVES_BACK | 1;
	if (a == 0x41 && (b & 0xf8) == 0x58)
		return 8 << 9 | RESTORE_GIVES_BACK | 2;
	if (a == 0x48 && b == 0x83 && c == 0xc4)
		return hs_code(w, 3) << 9 | RESTORE_GIVES_BACK | 4;
	if (a == 0x48 && b == 0x81 && c == 0xc4)
		return (hs_code(w, 3) | (hs_code(w, 4) & 15) << 8) << 9 | RESTORE_GIVES_BACK | 7;
	if (a == 0x48 && b == 0x8d && c == 0x64 && hs_code(w, 3) == 0x24)
		return hs_code(w, 4) << 9 | RESTORE_GIVES_BACK | 5;
	return 0;
}

/* What a leaf is yet to do with the room: push, or call. 0: none of these. */
static inline u32 hs_takes(const struct walk *w)
{
	u32 a = hs_code(w, 0);

	if (a == 0xe8)
		return 5;
	if ((a & 0xf8) == 0x50)
		return RESTORE_TAKES | 1;
	return a == 0x41 && (hs_code(w, 1) & 0xf8) == 0x50 ? RESTORE_TAKES | 2 : 0;
}

/*
 * The length of the instruction at pc if it may be between a call and the end of the room that was made for it: loads
 * of saved values, moves of the result, marks of a call. For room that is given back as hs_gives_back(), for a leaf as
 * hs_takes(). 0: another instruction. -1: it cannot be read.
 */
static inline __attribute__((always_inline)) int hs_restores(struct walk *w, u64 pc, u32 frame)
{
	u32 a, b, gives;

	if (!walk_read(w, w->scratch, 16, pc))
		return -1;
	a = hs_code(w, 0);
	b = hs_code(w, 1);
	gives = hs_gives_back(w);
	if (gives >> 9 == frame - 16 && hs_code(w, gives & 15) == 0x5d) /* the end of the frame itself, then pop rbp */
		return 0;
	if (gives)
		return frame == 16 && a == 0x5d ? 0 : (int)gives;
	if (a == 0x0f && b == 0x1f && hs_code(w, 2) == 0x84)
		return 8;
	if ((a & 0xf8) == 0x48 && b == 0x8b && hs_slot_length(w, 2))
		return (int)hs_load_length(w, 1);
	if ((a & 0xf8) == 0x48 && (b == 0x8b || b == 0x89) && hs_code(w, 2) >> 6 == 3)
		return 3;
	a = w->leaf ? hs_takes(w) : 0;
	return (int)(a ? a : hs_vector_length(w));
}

#define ROOM_ABSENT   (~0ull)
#define SCRATCH_ROOM  2 /* behind the instruction */
#define SCRATCH_TAKEN 3

/* Adds an instruction to the sums in scratch. Returns its length; 0: another kind of instruction; -1: unreadable. */
WALK_GLOBAL int hotspot_add_room(struct walk *w, u64 pc, u32 frame)
{
	int is;

	WALK_CHECK(w);
	is = hs_restores(w, pc, frame);
	if (is < 0)
		return -1;
	if (is & RESTORE_TAKES && w->scratch[SCRATCH_ROOM])
		return 0;
	if (is & RESTORE_TAKES)
		w->scratch[SCRATCH_TAKEN] += 8;
	if (is & RESTORE_GIVES_BACK)
		w->scratch[SCRATCH_ROOM] += (u32)is >> 9;
	return is & 15;
}

/* How many bytes of room the code at pc gives back before it does anything else, of those that it has taken so far. */
WALK_GLOBAL u64 hotspot_room(struct walk *w, u32 frame)
{
	u64 pc, room, taken;
	int length = 1;

	WALK_CHECK(w);
	pc = w->reg[REG_PC];
	w->scratch[SCRATCH_ROOM] = w->scratch[SCRATCH_TAKEN] = 0;
	for (u32 i = 0; i < RESTORES_MAX && length > 0; i++) {
		length = hotspot_add_room(w, pc, frame);
		pc += (u32)length;
	}
	if (length < 0)
		return ROOM_ABSENT;
	room = w->scratch[SCRATCH_ROOM];
	taken = w->scratch[SCRATCH_TAKEN];
	return room & 7 || room < taken ? 0 : room - taken;
}

/*
 * The Method of the nmethod at pc, in any of the heaps; its header is in w->vm.word then. METHOD_NONE: other code, or a
 * native method, because calls by method handles jump on from one. 0: there is no code. METHOD_ABSENT: it cannot be
 * read.
 */
WALK_GLOBAL u64 hotspot_method_of(struct walk *w, u64 pc)
{
	const struct hotspot_vm *vm;
	u32 heap;
	u64 segment, first;
	u8 back = SEGMENT_FREE;

	WALK_CHECK(w);
	vm = hs_vm_here(w);
	if (!vm)
		return METHOD_ABSENT;
	for (heap = 0; heap < HOTSPOT_HEAPS - 1; heap++)
		if (pc - vm->heap[heap].low < vm->heap[heap].size)
			break;
	heap = walk_launder(w, heap) & (HOTSPOT_HEAPS - 1);
	if (pc - vm->heap[heap].low >= vm->heap[heap].size)
		return 0;
	segment = first = (pc - vm->heap[heap].low) >> (vm->log2_segment & 63);
	for (u32 i = 0; i < HOPS_MAX; i++) {
		if (!walk_read(w, &back, 1, vm->heap[heap].segmap + first))
			return METHOD_ABSENT;
		if (!back || back == SEGMENT_FREE)
			break;
		first -= back;
	}
	if (back || first > segment)
		return 0;
	if (!hs_read_at(w, vm, vm->heap[heap].low + (first << (vm->log2_segment & 63))))
		return METHOD_ABSENT;
	if (hs_field(w, vm->kind) != vm->kind_nmethod || hs_is_native(w, vm, w->scratch[0]))
		return METHOD_NONE;
	return hs_field(w, vm->method);
}

/*
 * How a direct call to `target`, with `pc` behind it, relates to an nmethod of this method. Calls may be bound anew
 * while they are in progress.
 */
WALK_GLOBAL int hotspot_leads(struct walk *w, u64 target, u64 pc, u64 method)
{
	u64 there, from;

	WALK_CHECK(w);
	there = hotspot_method_of(w, target);
	if (there == METHOD_ABSENT)
		return CALL_ABSENT;
	if (there == method)
		return CALL_HERE;
	if (there == METHOD_NONE)
		return CALL_MAYBE;
	if (target < pc)
		return CALL_NONE;
	from = hotspot_method_of(w, pc);
	if (from == METHOD_ABSENT)
		return CALL_ABSENT;
	return there && there == from ? CALL_MAYBE : CALL_NONE; /* to a stub of the caller's own, behind its code */
}

/* Is an indirect call before pc? code: the eight bytes there. */
static inline bool hs_is_indirect(u64 code)
{
	return (code >> 48 & 0xf8ff) == 0xd0ff || (code >> 40 & 0x38ff) == 0x10ff || (code >> 32 & 0x38ff) == 0x10ff ||
	       (code >> 16 & 0x38ff) == 0x10ff || (code >> 8 & 0x38ff) == 0x10ff;
}

/*
 * There is no direct call before pc: the code was deoptimised, the call is that of call_stub or the like, or one
 * through a table of methods.
 */
WALK_GLOBAL int hotspot_enters(struct walk *w, u64 pc, u64 code, u64 at)
{
	const struct hotspot_vm *vm;
	u64 fp;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return CALL_NONE;
	if (pc == vm->return_barrier)
		return CALL_MAYBE;
	switch (hotspot_method_of(w, pc)) {
	case 0:
		return CALL_NONE;
	case METHOD_ABSENT:
		return CALL_ABSENT;
	case METHOD_NONE:
		if (!hs_is_indirect(code))
			return CALL_NONE;
		if (!walk_stack(w, at - 8, &fp))
			return CALL_ABSENT;
		return fp > at && fp - at < ENTRY_FRAME_MAX ? CALL_MAYBE : CALL_NONE;
	default:
		return hs_is_indirect(code) || hs_is_deopt(w, vm, w->scratch[0], pc) ? CALL_MAYBE : CALL_NONE;
	}
}

/* From the interpreter? The frame of a method is at the rbp that was saved, then. */
WALK_GLOBAL int hotspot_interprets(struct walk *w, u64 at)
{
	const struct hotspot_vm *vm;
	u64 fp, method, bcp, constants;
	u16 size;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !walk_stack(w, at - 8, &fp))
		return CALL_ABSENT;
	if (fp <= at || fp - at > FRAME_MAX)
		return CALL_NONE;
	if (!walk_stack(w, fp - vm->bcp, &bcp) || !walk_stack(w, fp - 24, &method))
		return CALL_ABSENT;
	if (!method || method & 7)
		return CALL_NONE;
	if (!walk_read(w, &constants, 8, method + vm->method_const) ||
	        !walk_read(w, &size, 2, constants + vm->const_code_size))
		return CALL_ABSENT;
	return bcp - constants - vm->const_size < size ? CALL_INTERPRETED : CALL_NONE;
}

/*
 * Was the return address at `at` pushed by a call that led to the nmethod from begin to end, which is of this method?
 * CALL_MAYBE: by a call of code that leads to several.
 */
WALK_GLOBAL int hotspot_call_at(struct walk *w, u64 at, u64 begin, u64 end, u64 method)
{
	const struct hotspot_vm *vm;
	u64 pc, code, target;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !walk_stack(w, at, &pc))
		return CALL_ABSENT;
	if (!hs_may_call(vm, pc))
		return CALL_NONE;
	if (pc - vm->interpreter_low < vm->interpreter_size)
		return hotspot_interprets(w, at);
	if (!walk_read(w, &code, OPCODE_BYTES, pc - OPCODE_BYTES))
		return CALL_ABSENT;
	if ((code >> 24 & 0xff) != 0xe8)
		return hotspot_enters(w, pc, code, at);
	target = pc + (u64)(s64)(s32)(code >> 32);
	return target - begin < end - begin ? CALL_HERE : hotspot_leads(w, target, pc, method);
}

/* Stores in scratch, from SCRATCH_CALLEE on, what identifies calls of the nmethod in w->vm.word, for later. */
#define SCRATCH_PC     8 /* words before it are read from the stack */
#define SCRATCH_CALLEE 11
#define SCRATCH_BEST   14
#define SCRATCH_CFA    15

static inline void hs_note_callee(struct walk *w, const struct hotspot_vm *vm, u64 begin, u64 cfa)
{
	w->scratch[SCRATCH_CALLEE] = begin;
	w->scratch[SCRATCH_CALLEE + 1] = begin + (hs_field(w, vm->length) << (vm->log2_segment & 63));
	w->scratch[SCRATCH_CALLEE + 2] = hs_field(w, vm->method);
	w->scratch[SCRATCH_CFA] = cfa;
}

/* hotspot_call_at() for that nmethod, with the caller's frame at cfa. */
static inline int hs_called_at(struct walk *w, u64 cfa)
{
	return hotspot_call_at(
	        w, cfa - 8, w->scratch[SCRATCH_CALLEE], w->scratch[SCRATCH_CALLEE + 1], w->scratch[SCRATCH_CALLEE + 2]);
}

/*
 * Is a call of this nmethod there? CALL_ABSENT: that cannot be read. The best that was found so far, and the caller's
 * frame, are kept in scratch.
 */
static inline __attribute__((always_inline)) int hs_guess(struct walk *w, u64 cfa)
{
	int call = hs_called_at(w, cfa);

	if (call == CALL_ABSENT)
		return CALL_ABSENT;
	if ((u64)call > (w->scratch[SCRATCH_BEST] & 7))
		w->scratch[SCRATCH_BEST] = (cfa & ~7ull) | (u64)call;
	return call == CALL_HERE;
}

/*
 * Searches some words above the expected place for the call, as a guess. A call of this nmethod is preferred to one
 * from the interpreter, because old interpreter frames look intact. If no call is found, the stack ends.
 */
WALK_GLOBAL int hotspot_leave_guessed(struct walk *w)
{
	const struct hotspot_vm *vm;
	int found = 0, stop;
	u64 from, cfa;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	from = w->scratch[SCRATCH_CFA];
	if (vm->bcp == BCP_OF_8)
		from += (u64)(u32)hotspot_pushed(w) * 8;
	w->scratch[SCRATCH_BEST] = CALL_NONE;
	for (u32 i = 0; i < MOVED_MAX && !found; i++)
		found = hs_guess(w, from + (u64)i * 8);
	if (found == CALL_ABSENT)
		return STOP_VM_ABSENT;
	cfa = w->scratch[SCRATCH_BEST] & ~7ull;
	if (!cfa) {
		w->reg[REG_PC] = 0; /* the frame is pushed: who goes on later does not do so at it */
		return STOP_BAD_RETADDR;
	}
	stop = hotspot_return(w, cfa, cfa - 16);
	w->flags = FRAME_GUESS;
	return stop;
}

/* To the caller's frame at cfa if a call of this nmethod is there; LEAF_STANDS: it is not. */
static inline int hs_try(struct walk *w, u64 cfa)
{
	int call = hs_called_at(w, cfa);

	if (call == CALL_ABSENT)
		return STOP_VM_ABSENT;
	return call ? hotspot_return(w, cfa, cfa - 16) : LEAF_STANDS;
}

/*
 * The caller of a compiled frame that is complete; its header is in w->vm.word. The frame of a native method's wrapper
 * is at rbp. LEAF_STANDS: no return address of its caller was found.
 */
WALK_GLOBAL int hotspot_leave_moved(struct walk *w, u64 begin, u32 frame)
{
	const struct hotspot_vm *vm;
	u64 cfa, room;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	cfa = w->reg[REG_SP] + frame;
	hs_note_callee(w, vm, begin, cfa);
	if (hs_is_native(w, vm, begin + vm->block_size) && walk_has(w, REG_FP) &&
	        w->reg[REG_FP] + 16 - cfa < PUSHED_MAX) {
		stop = hs_try(w, w->reg[REG_FP] + 16);
		if (stop != LEAF_STANDS)
			return stop;
	}
	room = hotspot_room(w, frame);
	if (room == ROOM_ABSENT)
		return STOP_VM_ABSENT;
	stop = hs_try(w, cfa + room);
	return stop == LEAF_STANDS && room ? hs_try(w, cfa) : stop;
}

/*
 * Looks up the stack for a word that points into the code cache, and leaves it in scratch[SCRATCH_PC]. Returns the
 * address behind it; 0: none is near.
 */
WALK_GLOBAL u64 hotspot_next_return(struct walk *w, u64 from)
{
	const struct hotspot_vm *vm;

	WALK_CHECK(w);
	vm = hs_vm(w);
	for (u32 n = 0; vm && n < FRAMELESS_WORDS; n += SCRATCH_PC, from += SCRATCH_PC * 8) {
		if (!walk_read(w, w->scratch, SCRATCH_PC * 8, from))
			return 0;
		for (u32 i = 0; i < SCRATCH_PC; i++) {
			w->scratch[SCRATCH_PC] = w->scratch[i];
			if (hs_may_call(vm, w->scratch[i]))
				return from + i * 8 + 8;
		}
	}
	return 0;
}

/*
 * The caller of an intrinsic of method handles, which has no frame and jumps to its target. A barrier of ZGC pushes
 * registers there (zBarrierSetAssembler_x86.cpp): the return address is the first one whose call leads to it.
 */
WALK_GLOBAL int hotspot_leave_frameless(struct walk *w, u64 begin)
{
	const struct hotspot_vm *vm;
	u64 cfa;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	hs_note_callee(w, vm, begin, 0);
	cfa = w->reg[REG_SP];
	for (u32 i = 0; i < FRAMELESS_TRIES; i++) {
		cfa = hotspot_next_return(w, cfa);
		if (!cfa)
			break;
		if (w->scratch[SCRATCH_PC] - vm->interpreter_low < vm->interpreter_size ||
		        hs_called_at(w, cfa) > CALL_NONE)
			return hotspot_return(w, cfa, 0);
	}
	w->reg[REG_PC] = 0; /* see hotspot_leave_guessed() */
	return STOP_BAD_RETADDR;
}

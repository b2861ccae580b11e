/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM made of a few pages of fake memory: a thread's stack, one code heap with its segment map and two compiled
 * methods, the interpreter, methods with bytecode; a virtual thread with chunks of frames. Reads can be made to fail.
 * Offsets are those of the configuration below.
 */
#ifndef YRT_HOTSPOT_FAKE_H
#define YRT_HOTSPOT_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cfi/cfi.h"
#include "driver.h"
#include "process/module.h"
#include "runtimes/hotspot/walk/hotspot.h"

#define FAKE_BYTES  (32u << 10)
#define FAKE_STACK  0x7fff00000000ull
#define FAKE_HEAP   0x40000000ull /* the code heap */
#define FAKE_DATA   0x50000000ull /* segment map, methods */
#define FAKE_JAVA   0x60000000ull /* JavaThread, Continuation, StackChunks */
#define FAKE_INTERP (FAKE_HEAP + 0x4000)
#define FAKE_STUBS  (FAKE_HEAP + 0x6000)
#define FAKE_ROOT   0x400000ull
#define FAKE_FRAMES 256
#define FAKE_FRAME  64 /* bytes of a compiled frame */

#define FAKE_SEGMENT 128
#define FAKE_METHODS (FAKE_DATA + 0x1000)

struct fake {
	struct memory memory;
	u8 stack[FAKE_BYTES], heap[FAKE_BYTES], data[FAKE_BYTES], java[FAKE_BYTES];
	u64 sp, fp, pc; /* of what was called last */
	u64 rbx, r13, r15;
	bool called;     /* pc is a return address */
	int reads, fail; /* reads so far; the number of the one that fails, -1: none */
	struct arena *arena;
	u32 vm, regions, nregions; /* in the arena: the configuration, what of the code is whose */
	struct walk_cache caches[WALK_CACHES];
	struct frame frames[FAKE_FRAMES];
	struct walk walk;
};

static const struct hotspot_vm fake_vm = {.low = FAKE_HEAP,
        .segmap = FAKE_DATA,
        .cache_low = FAKE_HEAP,
        .cache_high = FAKE_HEAP + FAKE_BYTES,
        .thaw = FAKE_STUBS + 32,
        .thaw_size = 32,
        .thaws_size = 32 + 64,
        .thaw_landing = HOTSPOT_LANDING,
        .barrier_landing = HOTSPOT_LANDING,
        .return_barrier = FAKE_STUBS + 64,
        .log2_segment = 7,
        .block_size = 16,
        .head_size = 72,
        .kind_nmethod = 352,
        .length = {0, 8},
        .used = {8, 1},
        .kind = {24, 4},
        .code_begin = {32, 8},
        .frame_size = {40, 4},
        .frame_complete = {44, 4},
        .compile_id = {48, 4},
        .orig_pc = {52, 4},
        .deopt = {56, 8},
        .method = {64, 8},
        .bcp = 64,
        .method_const = 8,
        .const_size = 48,
        .const_code_size = 32,
        .heap = {{FAKE_HEAP, FAKE_BYTES, FAKE_DATA}},
        .interpreter_low = FAKE_INTERP,
        .interpreter_size = FAKE_STUBS - FAKE_INTERP,
        .frozen = {.entry_pc_at = FAKE_JAVA + 256,
                .klass = 0x1234,
                .klass_shift = 1,
                .stack = 64,
                .cont_entry = 64,
                .last_java_sp = 72,
                .tail = 32,
                .parent = 40,
                .size = 16,
                .sp = 20,
                .bottom = 24,
                .max_thawing = 28,
                .flags = 32,
                .cont_parent = 48,
                .thread_handle = 80,
                .thread_cont = 16,
                .z = {.good_mask_at = FAKE_JAVA + 264,
                        .young = FAKE_JAVA + 7 * 4096,
                        .old = FAKE_JAVA + 7 * 4096 + 64,
                        .granules = 8,
                        .offset_mask = (1 << 24) - 1,
                        .alignment = 8,
                        .ref_count = 16,
                        .length = 24,
                        .entries = 32,
                        .granule_shift = 12}}};

#define FAKE_THREAD  FAKE_JAVA
#define FAKE_CONT    (FAKE_JAVA + 512)
#define FAKE_HANDLE  (FAKE_JAVA + 288) /* to the carrier */
#define FAKE_CARRIER (FAKE_JAVA + 320)

static inline u8 *fake_at(struct fake *f, u64 addr, size_t size)
{
	if (addr - FAKE_STACK < FAKE_BYTES && addr - FAKE_STACK + size <= FAKE_BYTES)
		return f->stack + (addr - FAKE_STACK);
	if (addr - FAKE_HEAP < FAKE_BYTES && addr - FAKE_HEAP + size <= FAKE_BYTES)
		return f->heap + (addr - FAKE_HEAP);
	if (addr - FAKE_DATA < FAKE_BYTES && addr - FAKE_DATA + size <= FAKE_BYTES)
		return f->data + (addr - FAKE_DATA);
	if (addr - FAKE_JAVA < FAKE_BYTES && addr - FAKE_JAVA + size <= FAKE_BYTES)
		return f->java + (addr - FAKE_JAVA);
	return NULL;
}

static inline bool fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct fake *f = (struct fake *)mem;
	const u8 *from = fake_at(f, addr, size);

	if (f->reads++ == f->fail || !from)
		return false;
	memcpy(dst, from, size);
	return true;
}

static inline void put64(struct fake *f, u64 addr, u64 value)
{
	memcpy(fake_at(f, addr, sizeof(value)), &value, sizeof(value));
}

static inline void put32(struct fake *f, u64 addr, u32 value)
{
	memcpy(fake_at(f, addr, sizeof(value)), &value, sizeof(value));
}

/* --- code --- */

/* The nmethod with this compile id: 1 and 2 are there. */
static inline u64 fake_nmethod(u32 id)
{
	return FAKE_HEAP + id * 0x1000 + fake_vm.block_size;
}

static inline u64 fake_code(u32 id)
{
	return fake_nmethod(id) + 256;
}

/* mov [rsp - 0x14000], eax; push rbp; sub rsp, 48; … add rsp, 48; pop rbp; cmp rsp, [r15 + 0x3e0]; ja; ret */
static const u8 fake_prologue[] = {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, FAKE_FRAME - 16};
static const u8 fake_epilogue[] = {0x48, 0x83, 0xc4, FAKE_FRAME - 16, 0x5d, 0x49, 0x3b, 0xa7, 0xe0, 0x03, 0x00, 0x00,
        0x0f, 0x87, 0x20, 0x00, 0x00, 0x00, 0xc3};
#define FAKE_EPILOGUE 128 /* from the code's beginning */
#define FAKE_DEOPT    512
#define FAKE_ORIG_PC  16

/* A block of so many segments with the header of an nmethod. */
static inline void fake_put_header(struct fake *f, u64 block, u32 segments, u64 code, u32 id)
{
	for (u32 i = 0; i < segments; i++)
		f->data[(block - FAKE_HEAP) / FAKE_SEGMENT + i] = i;
	put64(f, block + fake_vm.length.at, segments);
	put64(f, block + fake_vm.used.at, 1);
	put32(f, block + fake_vm.kind.at, fake_vm.kind_nmethod);
	put64(f, block + fake_vm.code_begin.at, code);
	put32(f, block + fake_vm.frame_size.at, FAKE_FRAME / 8);
	put32(f, block + fake_vm.frame_complete.at, sizeof(fake_prologue));
	put32(f, block + fake_vm.compile_id.at, id);
	put32(f, block + fake_vm.orig_pc.at, FAKE_ORIG_PC);
	put64(f, block + fake_vm.deopt.at, code + FAKE_DEOPT);
	put64(f, block + fake_vm.method.at, FAKE_METHODS + id * 512);
}

static inline void fake_put_nmethod(struct fake *f, u32 id)
{
	fake_put_header(f, fake_nmethod(id) - fake_vm.block_size, 16, fake_code(id), id);
	memset(fake_at(f, fake_code(id), 1024), 0x90, 1024);
	memcpy(fake_at(f, fake_code(id), 64), fake_prologue, sizeof(fake_prologue));
	memcpy(fake_at(f, fake_code(id) + FAKE_EPILOGUE, 64), fake_epilogue, sizeof(fake_epilogue));
}

/* Method number i and its bytecode, 100 bytes. */
static inline u64 fake_method(u32 i)
{
	return FAKE_METHODS + i * 512;
}

static inline u64 fake_bytecode(u32 i)
{
	return fake_method(i) + 128 + fake_vm.const_size;
}

static inline void fake_put_method(struct fake *f, u32 i)
{
	put64(f, fake_method(i) + fake_vm.method_const, fake_method(i) + 128);
	put32(f, fake_method(i) + 128 + fake_vm.const_code_size, 100);
}

static inline bool fake_regions(struct fake *f)
{
	struct cfi_entry root = {
	        .addr = FAKE_ROOT, .rule = {.kind = CFI_ROOT, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG}};
	struct region r[] = {
	        {.start = FAKE_ROOT, .end = FAKE_ROOT + 4096, .origin = FAKE_ROOT},
	        {.start = FAKE_HEAP, .end = FAKE_INTERP, .runtime = RUNTIME_HOTSPOT, .part = HOTSPOT_HEAP},
	        {.start = FAKE_INTERP, .end = FAKE_STUBS, .runtime = RUNTIME_HOTSPOT, .part = HOTSPOT_INTERPRETER},
	        {.start = FAKE_STUBS, .end = FAKE_HEAP + FAKE_BYTES, .runtime = RUNTIME_HOTSPOT, .part = HOTSPOT_STUBS},
	};
	struct cfi *cfi = NULL;
	u32 *tables = NULL;
	bool ok;

	ok = !arena_alloc(f->arena, sizeof(fake_vm), &f->vm) && !arena_alloc(f->arena, sizeof(r), &f->regions) &&
	     !cfi_from_entries(&root, 1, FAKE_ROOT, FAKE_ROOT + 4096, &cfi) && !modules_place(f->arena, cfi, &tables);
	if (ok) {
		memcpy(arena_at(f->arena, f->vm, sizeof(fake_vm)), &fake_vm, sizeof(fake_vm));
		r[0].table = tables[0];
		r[1].vm = r[2].vm = r[3].vm = f->vm;
		memcpy(arena_at(f->arena, f->regions, sizeof(r)), r, sizeof(r));
		f->nregions = 4;
	}
	free(tables);
	cfi_destroy(cfi);
	return ok;
}

/* A thread whose outermost frame is native. */
static inline struct fake *fake_create(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f || arena_create(NULL, &f->arena) || !fake_regions(f))
		abort();
	f->memory.read = fake_read;
	f->fail = -1;
	memset(f->data, 0xff, 4096);
	fake_put_nmethod(f, 1);
	fake_put_nmethod(f, 2);
	for (u32 i = 0; i < 4; i++)
		fake_put_method(f, i);
	f->sp = FAKE_STACK + FAKE_BYTES - 4096;
	f->fp = f->sp + 64;
	f->pc = FAKE_ROOT + 16;
	return f;
}

static inline void fake_destroy(struct fake *f)
{
	arena_destroy(f->arena);
	free(f);
}

/* --- frames --- */

/* Calls an interpreted method, which stands at this bytecode now. */
static inline void fake_interpreted(struct fake *f, u32 method, u32 bci)
{
	u64 sender = f->sp;

	put64(f, sender - 8, f->pc);
	put64(f, sender - 16, f->fp);
	f->fp = sender - 16;
	put64(f, f->fp - 8, sender);
	put64(f, f->fp - 24, fake_method(method));
	put64(f, f->fp - fake_vm.bcp, fake_bytecode(method) + bci);
	f->sp = f->fp - 96;
	f->pc = FAKE_INTERP + 0x100;
}

/* A direct call before pc, if that is compiled code. */
static inline void fake_call(struct fake *f, u64 pc, u64 to)
{
	u8 *at = pc - FAKE_HEAP < FAKE_INTERP - FAKE_HEAP ? fake_at(f, pc - 5, 5) : NULL;
	s32 offset = (s32)(to - pc);

	if (!at)
		return;
	*at = 0xe8;
	memcpy(at + 1, &offset, sizeof(offset));
}

/* Calls a compiled method, which stands at this offset of its code. */
static inline void fake_compiled(struct fake *f, u32 id, u32 offset)
{
	fake_call(f, f->pc, fake_code(id));
	put64(f, f->sp - 8, f->pc);
	put64(f, f->sp - 16, f->fp);
	f->sp -= FAKE_FRAME;
	f->fp = 0x1234; /* any value: compiled code uses rbp as it likes */
	f->pc = fake_code(id) + offset;
}

/* --- a virtual thread --- */

/*
 * An interpreted method, the last, calls enterSpecial, the second nmethod: what follows runs in a continuation, whose
 * frames in the heap come by fake_chunk().
 */
static inline void fake_enter(struct fake *f)
{
	fake_interpreted(f, 3, 7);
	fake_compiled(f, 2, 64);
	put64(f, f->sp + 8, 0);
	put64(f, f->sp + 16, FAKE_CONT);
	f->r15 = FAKE_THREAD;
	put64(f, FAKE_THREAD + fake_vm.frozen.cont_entry, f->sp);
	put64(f, fake_vm.frozen.entry_pc_at, f->pc);
	put64(f, FAKE_CONT + fake_vm.frozen.tail, 0);
}

struct fake_chunk {
	u64 at, end;
	u64 sp, fp, pc; /* of what was frozen last */
};

#define FAKE_CHUNK_WORDS 256

/* Chunk number i, from 1 on, with no frames yet; it becomes the continuation's last. */
static inline struct fake_chunk fake_chunk(struct fake *f, u32 i)
{
	struct fake_chunk c = {.at = FAKE_JAVA + i * 4096};
	u64 parent;

	c.sp = c.end = c.at + fake_vm.frozen.stack + FAKE_CHUNK_WORDS * 8;
	memcpy(&parent, fake_at(f, FAKE_CONT + fake_vm.frozen.tail, 8), 8);
	put64(f, c.at, 1);
	put32(f, c.at + 8, fake_vm.frozen.klass);
	put64(f, c.at + fake_vm.frozen.parent, parent);
	put32(f, c.at + fake_vm.frozen.size, FAKE_CHUNK_WORDS);
	put32(f, c.at + fake_vm.frozen.sp, FAKE_CHUNK_WORDS);
	put32(f, c.at + fake_vm.frozen.bottom, FAKE_CHUNK_WORDS);
	put64(f, FAKE_CONT + fake_vm.frozen.tail, c.at);
	return c;
}

static inline void fake_frozen(struct fake *f, struct fake_chunk *c, u64 at)
{
	put64(f, at + 8, c->pc);
	put64(f, at, (c->fp - at) / 8);
}

/* The chunk's innermost frame is the last that was frozen. */
static inline void fake_chunk_end(struct fake *f, struct fake_chunk *c)
{
	fake_frozen(f, c, c->sp - 16);
	put32(f, c->at + fake_vm.frozen.sp, (c->sp - c->at - fake_vm.frozen.stack) / 8);
	put32(f, c->at + fake_vm.frozen.max_thawing, (c->end - c->sp) / 8);
}

static inline void fake_frozen_compiled(struct fake *f, struct fake_chunk *c, u32 id, u32 offset)
{
	fake_frozen(f, c, c->sp - 16);
	c->sp -= FAKE_FRAME;
	c->fp = c->sp;
	c->pc = fake_code(id) + offset;
	fake_chunk_end(f, c);
}

static inline void fake_frozen_interpreted(struct fake *f, struct fake_chunk *c, u32 method, u32 bci)
{
	u64 fp = c->sp - 16;

	fake_frozen(f, c, fp);
	put64(f, fp - 8, (c->sp - fp) / 8);
	put64(f, fp - 16, (u64)-12);
	put64(f, fp - 24, fake_method(method));
	put64(f, fp - fake_vm.bcp + 8, 1);
	put64(f, fp - fake_vm.bcp, fake_bytecode(method) + bci);
	c->fp = fp;
	c->sp = fp - 96;
	c->pc = FAKE_INTERP + 0x100;
	put32(f, c->at + fake_vm.frozen.flags, 1);
	fake_chunk_end(f, c);
}

/* References are coloured from now on: state is 0 to 3, of the four that the generations of ZGC may be in. Those there
 * are stay as they are. */
static inline u64 fake_coloured(u64 object, u32 state)
{
	return object << (13 + state) | 1ull << (12 + state) | 0x110;
}

static inline struct hotspot_vm *fake_colour(struct fake *f, u32 state)
{
	struct hotspot_vm *vm = arena_at(f->arena, f->vm, sizeof(*vm));

	vm->frozen.oops = HOTSPOT_OOP_COLOURED;
	put64(f, fake_vm.frozen.z.good_mask_at, 1ull << (12 + state));
	put64(f, FAKE_THREAD + fake_vm.frozen.thread_handle, FAKE_HANDLE);
	put64(f, FAKE_HANDLE, fake_coloured(FAKE_CARRIER, state));
	put64(f, FAKE_CARRIER + fake_vm.frozen.thread_cont, fake_coloured(FAKE_CONT, state));
	return vm;
}

#define FAKE_ENTRIES 8

/* A generation moves objects of this page of FAKE_JAVA, 1 to 6: its ZForwarding, without entries. */
static inline u64 fake_forwarding(struct fake *f, bool old, u32 page)
{
	u64 at = FAKE_JAVA + 7 * 4096 + 256 + page * 256 + old * 128;

	put64(f, (old ? fake_vm.frozen.z.old : fake_vm.frozen.z.young) + page * 8, at);
	put64(f, at + fake_vm.frozen.z.start, page * 4096);
	put64(f, at + fake_vm.frozen.z.alignment, 3);
	put32(f, at + fake_vm.frozen.z.ref_count, 1);
	put64(f, at + fake_vm.frozen.z.length, FAKE_ENTRIES);
	return at;
}

/* Puts an entry where it was found to be by zHash.inline.hpp, or `next` places behind. */
static inline void fake_moved(struct fake *f, u64 forwarding, u32 slot, u64 from, u64 to)
{
	put64(f, forwarding + fake_vm.frozen.z.entries + slot % FAKE_ENTRIES * 8,
	        (from % 4096) >> 3 << 46 | (to & fake_vm.frozen.z.offset_mask) << 1 | 1);
}

static inline int fake_walk(struct fake *f)
{
	struct walk *w = &f->walk;
	int stop = STOP_NONE;

	f->reads = 0;
	memset(w, 0, offsetof(struct walk, stack));
	w->stack.start = w->stack.len = w->vm.start = w->vm.len = 0;
	w->reg[REG_PC] = f->pc;
	w->reg[REG_SP] = f->sp;
	w->reg[REG_FP] = f->fp;
	w->reg[DWREG_RBX] = f->rbx;
	w->reg[DWREG_R13] = f->r13;
	w->reg[DWREG_R15] = f->r15;
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = !f->called;
	w->max_frames = FAKE_FRAMES;
	w->regions = f->regions;
	w->nregions = f->nregions;
	w->target = (struct walk_target){&f->memory, f->arena, f->frames, f->caches};
	for (u32 i = 0; !stop && i < walk_steps_max(w); i++)
		stop = walk_step(w);
	return walk_end(w, stop);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LuaJIT process made of a few pages of fake memory: native stack, Lua stacks, functions, and the regions of its
 * code. Reads can be made to fail. Layout and numbers are those of the walker's configuration below, not of any build.
 */
#ifndef YRT_LUAJIT_FAKE_H
#define YRT_LUAJIT_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cfi/cfi.h"
#include "driver.h"
#include "process/module.h"
#include "runtimes/luajit/luajit.h"
#include "runtimes/luajit/luajit_bytecode.h"
#include "runtimes/luajit/luajit_layout.h"

#define FAKE_BYTES  (64u << 10)
#define FAKE_NATIVE 0x7fff00000000ull /* memory of the native stack */
#define FAKE_LUA    0x40000000ull     /* of all else; references of 32 bits reach it */
#define FAKE_FRAMES 256

#define CODE_INTERP 0x400000ull
#define CODE_TRACE  0x401000ull
#define CODE_C      0x402000ull /* C functions: CFA = rsp + 32 */
#define CODE_ROOT   0x403000ull
#define CODE_EXIT   0x404000ull /* the handler of trace exits */
#define CODE_BYTES  0x1000ull

#define FAKE_CALL_A 3 /* operand A of all calls */

struct fake {
	struct memory memory;
	u8 native[FAKE_BYTES], lua[FAKE_BYTES];
	u8 trace[64]; /* of machine code, at CODE_TRACE */
	u64 free;     /* in lua */
	u64 rsp;      /* lowest word of the native stack in use */
	u64 g;
	int reads, fail; /* reads so far; the number of the one that fails, -1: none */
	struct arena *arena;
	u32 regions, nregions;
	struct frame frames[FAKE_FRAMES];
	struct walk walk;
};

struct fake_thread { /* a lua_State under construction */
	u64 l, stack, base;
	u64 cframe;
};

static const struct luajit_vm fake_gc64 = {.l_gct = 9,
        .l_status = 11,
        .l_exdata2 = 104,
        .l_glref = 16,
        .l_base = 32,
        .l_maxstack = 48,
        .l_stack = 56,
        .l_cframe = 80,
        .g_cur_l = 16,
        .g_vmstate = 32,
        .g2disp = 256,
        .fn_ffid = 10,
        .fn_pc = 32,
        .fn_f = 40,
        .proto_size = 64,
        .proto_sizebc = 12,
        .cf_nres = 8,
        .cf_l = 16,
        .cf_pc = 24,
        .cf_prev = 32,
        .cf_r13 = -8,
        .bc_patched = LUAJIT_OP_PATCHED,
        .gc64 = 1};

static const struct luajit_vm fake_gc32 = {.l_gct = 5,
        .l_status = 7,
        .l_exdata2 = 72,
        .l_glref = 8,
        .l_base = 16,
        .l_maxstack = 32,
        .l_stack = 36,
        .l_cframe = 48,
        .g_cur_l = 16,
        .g_vmstate = 32,
        .g2disp = 256,
        .fn_ffid = 6,
        .fn_pc = 16,
        .fn_f = 24,
        .proto_size = 64,
        .proto_sizebc = 12,
        .cf_nres = 16,
        .cf_l = 24,
        .cf_pc = 28,
        .cf_prev = 32,
        .cf_r13 = 8,
        .bc_patched = LUAJIT_OP_PATCHED};

/* The build that is faked: GC64 unless it was set before fake_create(). */
static struct luajit_vm fake_vm;

#define FAKE_REF      (fake_vm.gc64 ? 8u : 4u)
#define FAKE_WORDS    (fake_vm.gc64 ? 2u : 1u) /* of a frame */
#define FAKE_JIT_BASE (fake_vm.g_cur_l + FAKE_REF)

/* What naming needs of the same build. */
static inline struct luajit_layout fake_layout(void)
{
	return (struct luajit_layout){.l_gct = {9, 1},
	        .l_glref = {16, 8},
	        .proto_size = {64, 0},
	        .proto_sizebc = {12, 4},
	        .proto_k = {16, 8},
	        .proto_sizept = {24, 4},
	        .proto_sizeuv = {28, 1},
	        .proto_chunkname = {32, 8},
	        .proto_firstline = {40, 4},
	        .proto_numline = {44, 4},
	        .proto_lineinfo = {48, 8},
	        .proto_uvinfo = {48, 8},
	        .proto_varinfo = {48, 8},
	        .proto_framesize = {11, 1},
	        .str_len = {20, 4},
	        .str_size = {24, 0}};
}

static inline u8 *fake_at(struct fake *f, u64 addr, size_t size)
{
	if (addr >= FAKE_NATIVE && addr - FAKE_NATIVE + size <= FAKE_BYTES)
		return f->native + (addr - FAKE_NATIVE);
	if (addr >= FAKE_LUA && addr - FAKE_LUA + size <= FAKE_BYTES)
		return f->lua + (addr - FAKE_LUA);
	if (addr >= CODE_TRACE && addr - CODE_TRACE + size <= sizeof(f->trace))
		return f->trace + (addr - CODE_TRACE);
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

static inline void put8(struct fake *f, u64 addr, u8 value)
{
	*fake_at(f, addr, 1) = value;
}

static inline void put_ref(struct fake *f, u64 addr, u64 value)
{
	memcpy(fake_at(f, addr, FAKE_REF), &value, FAKE_REF);
}

static inline u64 fake_alloc(struct fake *f, u32 size)
{
	u64 addr = FAKE_LUA + f->free;

	f->free += (size + 15) & ~15u;
	return addr;
}

/* --- code --- */

static inline struct cfi_rule fake_rule(u8 kind, s32 cfa, s32 rbp, s32 rbx)
{
	struct cfi_rule rule = {
	        .kind = kind, .cfa_reg = REG_SP, .cfa_off = cfa, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_SAME;
	if (rbx)
		rule.slot[0] = cfi_slot(rbx, 0);
	if (rbp)
		rule.slot[1] = cfi_slot(rbp, 0);
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

static inline bool fake_region(
        struct fake *f, struct region *r, u64 start, u8 part, u32 vm, const struct cfi_rule *rule)
{
	struct cfi_entry entry = {.addr = start};
	struct cfi *cfi = NULL;
	u32 *tables = NULL;
	bool ok;

	*r = (struct region){.start = start,
	        .end = start + CODE_BYTES,
	        .origin = start,
	        .vm = vm,
	        .part = part,
	        .runtime = vm ? RUNTIME_LUAJIT : RUNTIME_NATIVE};
	if (!rule)
		return true;
	entry.rule = *rule;
	ok = !cfi_from_entries(&entry, 1, start, start + CODE_BYTES, &cfi) && !modules_place(f->arena, cfi, &tables);
	if (ok)
		r->table = tables[0];
	free(tables);
	cfi_destroy(cfi);
	return ok;
}

static inline bool fake_code(struct fake *f)
{
	const struct cfi_rule interp = fake_rule(CFI_REG, 80, -16, -24), c = fake_rule(CFI_REG, 32, 0, 0);
	const struct cfi_rule root = fake_rule(CFI_ROOT, 8, 0, 0), none = fake_rule(CFI_UNSUPPORTED, 8, 0, 0);
	struct region r[5];
	u32 vm;

	if (arena_alloc(f->arena, sizeof(fake_vm), &vm) || arena_alloc(f->arena, sizeof(r), &f->regions))
		return false;
	memcpy(arena_at(f->arena, vm, sizeof(fake_vm)), &fake_vm, sizeof(fake_vm));
	if (!fake_region(f, &r[0], CODE_INTERP, LUAJIT_INTERP, vm, &interp) ||
	        !fake_region(f, &r[1], CODE_TRACE, LUAJIT_TRACE, vm, NULL) ||
	        !fake_region(f, &r[2], CODE_C, 0, 0, &c) || !fake_region(f, &r[3], CODE_ROOT, 0, 0, &root) ||
	        !fake_region(f, &r[4], CODE_EXIT, LUAJIT_EXIT, vm, &none))
		return false;
	memcpy(arena_at(f->arena, f->regions, sizeof(r)), r, sizeof(r));
	f->nregions = 5;
	return true;
}

/* The native stack begins with a return into the root. */
static inline struct fake *fake_create(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (!fake_vm.l_base)
		fake_vm = fake_gc64;
	f->memory.read = fake_read;
	f->fail = -1;
	f->free = 4096;
	f->rsp = FAKE_NATIVE + FAKE_BYTES - 4096 - 8; /* the CFA of a function is a multiple of 16 */
	put64(f, f->rsp, CODE_ROOT + 16);
	f->g = fake_alloc(f, 512);
	if (arena_create(NULL, &f->arena) || !fake_code(f))
		abort();
	return f;
}

static inline void fake_destroy(struct fake *f)
{
	arena_destroy(f->arena);
	free(f);
}

/* --- functions --- */

#define FAKE_CALL 66u /* an opcode below bc_patched */

/* A Lua function of 16 instructions, all different from those of other marks; returns its GCfunc. Its bytecode is at
 * *(GCfunc + fn_pc). */
static inline u64 fake_lua_function(struct fake *f, u8 mark)
{
	u64 proto = fake_alloc(f, fake_vm.proto_size + 64), fn = fake_alloc(f, 64);

	put8(f, proto + fake_vm.l_gct, 7);
	put32(f, proto + fake_vm.proto_sizebc, 16);
	for (u32 i = 0; i < 16; i++)
		put32(f, proto + fake_vm.proto_size + 4 * i, FAKE_CALL | FAKE_CALL_A << 8 | i << 16 | (u32)mark << 24);
	put8(f, fn + fake_vm.l_gct, 8);
	put_ref(f, fn + fake_vm.fn_pc, proto + fake_vm.proto_size);
	return fn;
}

static inline u64 fake_c_function(struct fake *f, u8 ffid, u64 code)
{
	u64 fn = fake_alloc(f, 64);

	put8(f, fn + fake_vm.l_gct, 8);
	put8(f, fn + fake_vm.fn_ffid, ffid);
	put64(f, fn + fake_vm.fn_f, code);
	return fn;
}

/* Behind instruction pos of a Lua function. */
static inline u64 fake_pc(struct fake *f, u64 fn, u32 pos)
{
	u64 bytecode = 0;

	memcpy(&bytecode, fake_at(f, fn + fake_vm.fn_pc, FAKE_REF), FAKE_REF);
	return bytecode + 4 * (pos + 1);
}

/* --- threads and frames --- */

static inline u64 tagged(u64 object, u32 type)
{
	return object | (~(u64)type << 47);
}

/* A frame's words: function (or thread) and link; a link of all ones is the bottom. */
static inline void put_frame(struct fake *f, u64 base, u64 object, u32 type, u64 link)
{
	if (fake_vm.gc64) {
		put64(f, base - 16, tagged(object, type));
		put64(f, base - 8, link);
	} else {
		put64(f, base - 8, object | (link == ~0ull ? ~(u64)type : link) << 32);
	}
}

static inline struct fake_thread fake_thread(struct fake *f)
{
	struct fake_thread t = {.l = fake_alloc(f, 128), .stack = fake_alloc(f, 4096)};

	put8(f, t.l + fake_vm.l_gct, 6);
	put_ref(f, t.l + fake_vm.l_glref, f->g);
	put_ref(f, t.l + fake_vm.l_stack, t.stack);
	put_ref(f, t.l + fake_vm.l_maxstack, t.stack + 4000);
	t.base = t.stack + 8 * FAKE_WORDS;
	put_frame(f, t.base, t.l, 6, ~0ull);
	put64(f, t.l + fake_vm.l_base, t.base);
	return t;
}

static inline void fake_frame(struct fake *f, struct fake_thread *t, u64 fn, u64 base, u64 link)
{
	put_frame(f, base, fn, 8, link);
	t->base = base;
	put64(f, t->l + fake_vm.l_base, base);
}

/* Called by a Lua function that is at pc. */
static inline void fake_call(struct fake *f, struct fake_thread *t, u64 fn, u64 pc)
{
	fake_frame(f, t, fn, t->base + 8 * (FAKE_WORDS + FAKE_CALL_A), pc);
}

/* A frame of another type, some slots above. */
static inline void fake_link(struct fake *f, struct fake_thread *t, u64 fn, u64 type)
{
	u64 base = t->base + 8 * 6;

	fake_frame(f, t, fn, base, (base - t->base) | type);
}

static inline void fake_continuation(struct fake *f, struct fake_thread *t, u64 fn, u64 pc, u64 continuation)
{
	u64 base = t->base + 8 * 8;

	if (fake_vm.gc64) {
		put64(f, base - 24, pc);
		put64(f, base - 32, continuation);
	} else {
		put64(f, base - 16, continuation | pc << 32);
	}
	fake_frame(f, t, fn, base, (base - t->base) | 2);
}

/* What lua-nginx-module keeps of a coroutine (luajit_host_walk.c). parent: its record. Returns the new one. */
enum { FAKE_RUNNING = 0, FAKE_SUSPENDED = 2, FAKE_NORMAL = 4, FAKE_SPAWNED = 32 };

static inline u64 fake_record(struct fake *f, const struct fake_thread *t, u64 parent, u32 ref, u32 flags)
{
	u64 record = fake_alloc(f, 0x180);

	put64(f, record + 8, t->l);
	put64(f, record + 16, parent);
	put32(f, record + 0xe0, ref);
	put32(f, record + 0xe4, flags);
	put64(f, t->l + fake_vm.l_exdata2, record);
	return record;
}

static inline void fake_yield(struct fake *f, const struct fake_thread *t)
{
	put8(f, t->l + fake_vm.l_status, 1);
	put64(f, t->l + fake_vm.l_cframe, 0);
}

/*
 * The native stack: f->rsp is where it stands right behind a call, at the return address. fake_native() is a C function
 * that was called so and calls in turn, fake_cframe() the same for the VM. saved: SAVE_PC; nres < 0: no Lua frame of
 * its own.
 */
static inline void fake_native(struct fake *f)
{
	f->rsp -= 32;
	put64(f, f->rsp, CODE_C + 64);
}

static inline void fake_cframe(struct fake *f, struct fake_thread *t, u64 saved, s32 nres)
{
	u64 cf = f->rsp + 8 - 80;

	put32(f, cf + fake_vm.cf_nres, (u32)nres);
	put_ref(f, cf + fake_vm.cf_l, t->l);
	put_ref(f, cf + fake_vm.cf_pc, saved);
	put64(f, cf + fake_vm.cf_prev, t->cframe);
	put64(f, t->l + fake_vm.l_cframe, cf);
	t->cframe = cf;
	f->rsp = cf - 8;
	put64(f, f->rsp, CODE_INTERP + 64);
}

/* A trace is left: its spill slots, the registers that the handler has saved, and the handler's call. */
static inline void fake_exit(struct fake *f)
{
	f->rsp -= 256;
	put64(f, f->rsp, CODE_EXIT + 64);
}

struct fake_registers {
	u64 pc, rbx, rdx, r14;
};

static inline u64 running_sp(const struct fake *f, u64 pc)
{
	if (pc >= CODE_C)
		return f->rsp - 24;
	return pc >= CODE_TRACE ? f->rsp - 64 : f->rsp + 8;
}

/* Walks from registers with the stack as it is: in a C function, in the last cframe, or on a trace. */
static inline int fake_walk(struct fake *f, struct fake_registers regs)
{
	struct walk *w = &f->walk;
	int stop = STOP_NONE;

	f->reads = 0;
	memset(w, 0, offsetof(struct walk, stack));
	w->stack.len = w->vm.len = 0;
	w->reg[REG_PC] = regs.pc;
	w->reg[REG_SP] = running_sp(f, regs.pc);
	w->reg[DWREG_RBX] = regs.rbx;
	w->reg[DWREG_RDX] = regs.rdx;
	w->reg[DWREG_R14] = regs.r14;
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = 1;
	w->max_frames = FAKE_FRAMES;
	w->regions = f->regions;
	w->nregions = f->nregions;
	w->target = (struct walk_target){.memory = &f->memory, .arena = f->arena, .frames = f->frames};
	for (u32 i = 0; i < walk_steps_max(w) && !stop; i++)
		stop = walk_step(w);
	return (int)walk_end(w, (u32)stop);
}

#endif

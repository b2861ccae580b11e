/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VM with one trace in 64 KiB of fake memory, with 64-bit references or without. The trace begins in function 0,
 * which has called 1, which has called 2; calls are at position 2 and put the callee into slot FAKE_A.
 */
#ifndef YRT_TRACE_FAKE_H
#define YRT_TRACE_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "runtimes/luajit/luajit_bytecode.h"
#include "runtimes/luajit/luajit_trace.h"

#define FAKE_START 0x20000ull
#define FAKE_BYTES 0x10000u
#define FAKE_G     (FAKE_START + 64)
#define FAKE_J     (FAKE_G + 256)
#define FAKE_A     3
#define FAKE_CODE  256 /* bytes of machine code, a snapshot each 64 */
#define FAKE_NOP   0x90909090u

struct trace_fake {
	struct memory memory;
	u8 bytes[FAKE_BYTES];
	u64 free;
	u32 reads;
	struct luajit_layout layout;
	struct luajit_image image;
	u64 proto[3], function[3];
	u64 ir, map, snaps; /* arrays of the trace; ir as biased */
	u32 nk, nmap, nsnaps;
	u64 trace, code, array;
};

static const char *fake_opcodes[] = {"LOOP", "KGC", "KNUM"};

static inline bool trace_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct trace_fake *f = (struct trace_fake *)mem;

	f->reads++;
	if (addr < FAKE_START || addr - FAKE_START > FAKE_BYTES || size > FAKE_BYTES - (addr - FAKE_START))
		return false;
	memcpy(dst, f->bytes + (addr - FAKE_START), size);
	return true;
}

static inline void fake_put(struct trace_fake *f, u64 addr, u64 value, u32 size)
{
	if (size <= sizeof(value) && addr >= FAKE_START && addr - FAKE_START + size <= FAKE_BYTES)
		memcpy(f->bytes + (addr - FAKE_START), &value, size);
}

static inline void fake_member(struct trace_fake *f, u64 object, struct layout_member m, u64 value)
{
	fake_put(f, object + m.at, value, m.size);
}

static inline u64 fake_alloc(struct trace_fake *f, u32 size)
{
	u64 ret = f->free;

	f->free += (size + 15) & ~15u;
	return ret;
}

static inline struct luajit_layout trace_fake_layout(bool gc64)
{
	u16 ref = gc64 ? 8 : 4;

	return (struct luajit_layout){.l_gct = {9, 1},
	        .l_glref = {16, ref},
	        .gg_g = {0, 8},
	        .gg_j = {256, 8},
	        .g_mainthref = {8, ref},
	        .j_trace = {0, 8},
	        .j_sizetrace = {8, 4},
	        .fn_ffid = {10, 1},
	        .fn_pc = {16, ref},
	        .fn_f = {24, 8},
	        .proto_size = {64, 64},
	        .proto_framesize = {11, 1},
	        .proto_sizebc = {12, 4},
	        .proto_k = {16, ref},
	        .proto_sizept = {24, 4},
	        .trace_size = {96, 96},
	        .trace_nins = {12, 4},
	        .trace_ir = {16, 8},
	        .trace_nk = {24, 4},
	        .trace_nsnapmap = {28, 4},
	        .trace_nsnap = {10, 2},
	        .trace_snap = {32, 8},
	        .trace_snapmap = {40, 8},
	        .trace_startpt = {48, ref},
	        .trace_startpc = {56, 8},
	        .trace_szmcode = {64, 4},
	        .trace_mcloop = {68, 4},
	        .trace_mcode = {72, 8},
	        .trace_traceno = {80, 2},
	        .snap_size = {12, 12},
	        .snap_mapofs = {0, 4},
	        .snap_ref = {4, 2},
	        .snap_mcofs = {6, 2},
	        .snap_nent = {10, 1},
	        .ir = {fake_opcodes, 3}};
}

static inline u64 fake_bytecode(const struct trace_fake *f, u32 i)
{
	return f->proto[i] + f->layout.proto_size.at;
}

/* A function with 16 instructions: its header, and calls. */
static inline void fake_function(struct trace_fake *f, u32 i)
{
	u32 op = 0;

	while (strcmp(luajit_ops[op].name, "CALL"))
		op++;
	f->proto[i] = fake_alloc(f, 128);
	f->function[i] = fake_alloc(f, 48);
	fake_put(f, f->proto[i] + 9, 7, 1);
	fake_put(f, f->proto[i] + 12, 16, 4);
	fake_put(f, f->proto[i] + 24, 128, 4);
	fake_member(f, f->proto[i], f->layout.proto_k, f->proto[i] + 128);
	fake_put(f, f->proto[i] + 11, FAKE_A, 1);
	for (u32 k = 0; k < 16; k++)
		fake_put(f, fake_bytecode(f, i) + 4ull * k, (k ? op : LUAJIT_OP_FUNCF) | FAKE_A << 8, 4);
	fake_put(f, f->function[i] + 9, 8, 1);
	fake_member(f, f->function[i], f->layout.fn_pc, fake_bytecode(f, i));
}

/* Returns its reference. */
static inline u32 fake_constant(struct trace_fake *f, u32 op, u32 type, u64 value)
{
	u64 head = (u64)op << 40 | (u64)type << 32;

	if (luajit_gc64(&f->layout)) {
		f->nk -= 2;
		fake_put(f, f->ir + 8ull * f->nk + 8, value, 8);
		fake_put(f, f->ir + 8ull * f->nk, head, 8);
	} else {
		f->nk--;
		fake_put(f, f->ir + 8ull * f->nk, head | (u32)value, 8);
	}
	return f->nk;
}

static inline void fake_entry(struct trace_fake *f, u32 word)
{
	fake_put(f, f->map + 4ull * f->nmap++, word, 4);
}

/* A snapshot in function `depth`, at position pos; calls were at position 2 of each. */
static inline void fake_snapshot(struct trace_fake *f, u32 place, u32 depth, u32 pos)
{
	u32 start = f->nmap, gc64 = luajit_gc64(&f->layout), slot = gc64, n = 0;
	u64 snap = f->snaps + 12ull * f->nsnaps++, pc = fake_bytecode(f, depth) + 4ull * pos;

	for (u32 i = 1; i <= depth; i++) {
		slot += FAKE_A + 1 + gc64;
		if (gc64)
			fake_entry(f, (slot - 1) << 24 | fake_constant(f, 1, 8, f->function[i]));
		fake_entry(f, slot << 24 | LUAJIT_SNAP_FRAME |
		                      (gc64 ? fake_constant(f, 2, 14, fake_bytecode(f, i - 1) + 12)
		                            : fake_constant(f, 1, 8, f->function[i])));
		n += 1 + gc64;
	}
	if (gc64) {
		pc = pc << 8 | (slot - 1);
		fake_entry(f, (u32)pc);
		fake_entry(f, pc >> 32);
	} else {
		fake_entry(f, (u32)pc);
		for (u32 i = depth; i > 0; i--)
			fake_entry(f, (u32)fake_bytecode(f, i - 1) + 12);
	}
	fake_put(f, snap, start, 4);
	fake_put(f, snap + 6, place, 2);
	fake_put(f, snap + 10, n, 1);
}

/* Writes the trace's head, with number 1, and enters it among those of the VM. */
static inline void fake_trace(struct trace_fake *f)
{
	const struct luajit_layout *l = &f->layout;

	fake_put(f, f->trace + 9, 9, 1);
	fake_member(f, f->trace, l->trace_ir, f->ir);
	fake_member(f, f->trace, l->trace_nk, f->nk);
	fake_member(f, f->trace, l->trace_nsnapmap, f->nmap);
	fake_member(f, f->trace, l->trace_nsnap, f->nsnaps);
	fake_member(f, f->trace, l->trace_snap, f->snaps);
	fake_member(f, f->trace, l->trace_snapmap, f->map);
	fake_member(f, f->trace, l->trace_startpt, f->proto[0]);
	fake_member(f, f->trace, l->trace_startpc, fake_bytecode(f, 0) + 4);
	fake_member(f, f->trace, l->trace_szmcode, FAKE_CODE);
	fake_member(f, f->trace, l->trace_mcode, f->code);
	fake_member(f, f->trace, l->trace_traceno, 1);
	fake_put(f, f->array + (luajit_gc64(l) ? 8 : 4), f->trace, luajit_gc64(l) ? 8 : 4);
}

/* Four snapshots: in function 0, 1, 2 and 0 again. Free with free(). */
static inline struct trace_fake *trace_fake_create(bool gc64)
{
	struct trace_fake *f = calloc(1, sizeof(*f));
	u64 thread;

	if (!f)
		abort();
	f->memory.read = trace_fake_read;
	f->layout = trace_fake_layout(gc64);
	f->image = (struct luajit_image){.layout = &f->layout, .vm = {.fn_f = f->layout.fn_f.at}};
	f->free = FAKE_START + 4096;
	thread = fake_alloc(f, 64);
	fake_member(f, thread, f->layout.l_glref, FAKE_G);
	fake_member(f, FAKE_G, f->layout.g_mainthref, thread);
	for (u32 i = 0; i < 3; i++)
		fake_function(f, i);
	f->nk = LUAJIT_REF_BIAS;
	f->ir = fake_alloc(f, 1024) + 1024 - 8ull * LUAJIT_REF_BIAS;
	f->map = fake_alloc(f, 512);
	f->snaps = fake_alloc(f, 128);
	f->trace = fake_alloc(f, 96);
	f->code = fake_alloc(f, FAKE_CODE);
	f->array = fake_alloc(f, 64);
	memset(f->bytes + (f->code - FAKE_START), 0x90, FAKE_CODE);
	fake_member(f, FAKE_J, f->layout.j_trace, f->array);
	fake_member(f, FAKE_J, f->layout.j_sizetrace, 4);
	for (u32 i = 0; i < 4; i++)
		fake_snapshot(f, i * 64, i % 3, 4 + i);
	fake_trace(f);
	return f;
}

/* What a walker pushes for pc. */
static inline void fake_frames(const struct trace_fake *f, u64 pc, u32 hint, struct frame ret[3])
{
	u32 call;

	memcpy(&call, f->bytes + (fake_bytecode(f, 0) - FAKE_START), sizeof(call));
	ret[0] = (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, FAKE_G),
	        luajit_detail(LUAJIT_FAST, LUAJIT_NO_POS, 0) | LUAJIT_JIT};
	ret[1] = (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, FRAME_APPROX, pc),
	        luajit_detail(LUAJIT_MCODE, hint, FAKE_NOP) | LUAJIT_JIT};
	ret[2] = (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, FRAME_APPROX, f->proto[0]),
	        luajit_detail(LUAJIT_LUA, LUAJIT_NO_POS, call) | LUAJIT_JIT};
}

#endif

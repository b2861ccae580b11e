/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a snapshot, from the running function down to the one at the trace's base, as lj_snap.c restores them
 * and lj_frame.h reads them. Slots are counted from the function of the base. With GC64 a frame has its function in one
 * slot and its link in the next; without, both share one slot, and the links follow the snapshot's entries, the topmost
 * first.
 */
#include "luajit_trace.h"

#include <string.h>

#include "luajit_bytecode.h"
#include "runtime.h"

#define FRAMES_MAX 256 /* slots of a trace: LJ_MAX_JSLOTS */
#define SCAN_BYTES 4096u
#define SCANS_MAX  16
#define HEAD_MAX   256
#define GCT_PROTO  7
#define LINK_P     4 /* of a link's type: a protected call */

struct chain {
	const struct luajit_trace *trace;
	const struct luajit_snapshot *snapshot;
	struct memory *mem;
	bool gc64;
	u32 slot; /* of the link; base_slot: the frame at the base */
	u32 base_slot;
	u32 link;     /* not GC64: index of the next link in the map */
	u64 pc;       /* 0: unknown */
	bool running; /* pc is the instruction itself, not the one behind a call */
	bool begun;   /* and the program has come to it */
	bool top;     /* on the topmost frame */
	struct frame *ret;
	u32 n, max;
};

static u64 get(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, bytes + m.at, m.size <= sizeof(value) ? m.size : sizeof(value));
	return value;
}

/* Bytecode begins with a header, whose operand A is the frame's size. */
static bool begins_function(struct memory *mem, u64 bytecode, u8 framesize)
{
	u32 header;

	return memory_read(mem, &header, sizeof(header), bytecode) && (u8)header >= LUAJIT_OP_FUNCF &&
	       (u8)header <= LUAJIT_OP_JFUNCV && luajit_operand_a(header) == framesize;
}

/* Is there a prototype at these bytes, which are those at addr, with pc in its bytecode? */
static bool is_proto(struct memory *mem, const struct luajit_layout *l, const u8 *bytes, u64 addr, u64 pc, u32 *sizebc)
{
	u64 size, k, bytecode = addr + l->proto_size.at;

	if (bytes[l->l_gct.at] != GCT_PROTO || !begins_function(mem, bytecode, bytes[l->proto_framesize.at]))
		return false;
	*sizebc = (u32)get(bytes, l->proto_sizebc);
	size = (u32)get(bytes, l->proto_sizept);
	k = get(bytes, l->proto_k) - addr;
	return pc - bytecode < 4ull * *sizebc && k <= size && k >= l->proto_size.at + 4ull * *sizebc;
}

/* The prototype in a page, from its end downwards, in whose bytecode pc lies. */
static bool scan_page(const struct chain *c, u64 page, u64 pc, struct luajit_constant *ret)
{
	const struct luajit_layout *l = c->trace->layout;
	u8 bytes[SCAN_BYTES], head[HEAD_MAX];

	if (l->proto_size.at > sizeof(head) || !memory_read(c->mem, bytes, sizeof(bytes), page))
		return false;
	for (u32 at = SCAN_BYTES - 8; at < SCAN_BYTES; at -= 8) {
		u64 addr = page + at;
		u32 gct = at + l->l_gct.at;

		if (gct < SCAN_BYTES && bytes[gct] != GCT_PROTO)
			continue;
		if (addr + l->proto_size.at > pc || !memory_read(c->mem, head, l->proto_size.at, addr) ||
		        !is_proto(c->mem, l, head, addr, pc, &ret->sizebc))
			continue;
		ret->ref = 0;
		ret->function = LUAJIT_LUA;
		ret->addr = addr;
		return true;
	}
	return false;
}

/* A function that the trace does not mention (it is called through a variable): its prototype stands before the
 * bytecode. */
static bool scan_proto(const struct chain *c, u64 pc, struct luajit_constant *ret)
{
	u64 page = pc & ~(u64)(SCAN_BYTES - 1);

	for (u32 i = 0; i < SCANS_MAX && page; i++, page -= SCAN_BYTES)
		if (scan_page(c, page, pc, ret))
			return true;
	return false;
}

/* The frame of a Lua function that is at pc. */
static bool make_lua(const struct chain *c, const struct luajit_constant *fn, u32 flags, struct frame *ret)
{
	u64 bytecode = fn->addr + c->trace->layout->proto_size.at, offset = (c->pc - bytecode) / 4;
	u32 pos = LUAJIT_NO_POS, instruction;

	if (c->pc && !(c->pc & 3) && offset < fn->sizebc)
		pos = (u32)offset - (!c->running && offset);
	if (!memory_read(c->mem, &instruction, sizeof(instruction), bytecode + (pos == LUAJIT_NO_POS ? 0 : 4ull * pos)))
		return false;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, flags, fn->addr);
	ret->detail = luajit_detail(LUAJIT_LUA, pos, luajit_cookie(LUAJIT_OP_PATCHED, instruction)) | LUAJIT_JIT;
	return true;
}

/* Puts the chain on its topmost frame. */
static bool start(struct chain *c)
{
	const struct luajit_snapshot *s = c->snapshot;
	u32 at = s->map + s->n;

	if (at + (c->gc64 ? 2 : 1) > s->end)
		return false;
	c->base_slot = c->gc64;
	if (c->gc64) {
		u64 word = c->trace->map[at] | (u64)c->trace->map[at + 1] << 32;

		c->pc = word >> 8;
		c->slot = (word & 0xff) + 1;
		return true;
	}
	c->pc = c->trace->map[at];
	c->link = at + 1;
	for (u32 i = 0; i < s->n; i++) {
		u32 entry = c->trace->map[s->map + i];

		if (entry & LUAJIT_SNAP_FRAME && entry >> 24 > c->slot)
			c->slot = entry >> 24;
	}
	return true;
}

/* Where the snapshot behind c's goes on; 0: there is none. */
static u64 next_pc(const struct chain *c)
{
	struct chain next = *c;

	if (c->snapshot + 1 == c->trace->snapshots + c->trace->nsnapshots)
		return 0;
	next.snapshot++;
	return start(&next) ? next.pc : 0;
}

/*
 * Is this the function that a trace is about to call, and not one that runs? Snapshots hold it where it has not begun:
 * the one that is ahead, and the last of a trace, which ends where it leaves the call to the interpreter or to another
 * trace. Functions in C never run on a trace. A builtin does, but nothing shows where it ends, unless the next snapshot
 * is right behind its call.
 */
static bool is_called_next(const struct chain *c, const struct luajit_constant *fn, u64 link)
{
	if (!c->top)
		return false;
	if (fn->function == LUAJIT_LUA)
		return !c->begun && c->pc == fn->addr + c->trace->layout->proto_size.at;
	return !c->begun || fn->function == LUAJIT_C || (link & 3) != LUAJIT_LINK_LUA || next_pc(c) != link;
}

static bool push(struct chain *c, const struct luajit_constant *fn, u64 link)
{
	u32 flags = FRAME_APPROX | FRAME_INLINED;
	struct frame *f = &c->ret[c->n];

	if (is_called_next(c, fn, link))
		return true;
	if (c->n == c->max)
		return false;
	if (fn->function != LUAJIT_LUA) {
		f->where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, flags, fn->addr);
		f->detail = luajit_detail(fn->function, LUAJIT_NO_POS, fn->function == LUAJIT_FAST ? (u32)fn->addr : 0);
	} else if (!make_lua(c, fn, flags, f)) {
		return false;
	}
	c->n++;
	return true;
}

/* The function in whose frame the chain is. */
static bool find_function(const struct chain *c, struct luajit_constant *ret)
{
	u32 entry = luajit_snapshot_entry(c->trace, c->snapshot, c->slot - c->gc64);
	const struct luajit_constant *fn = luajit_trace_function(c->trace, entry & 0xffff);

	if (!fn && c->pc)
		fn = luajit_trace_function_at(c->trace, c->running ? c->pc : c->pc - 4);
	if (fn)
		*ret = *fn;
	return fn || (c->pc && scan_proto(c, c->pc, ret));
}

/* The link of the frame, 0 if the snapshot has none. */
static u64 read_link(struct chain *c)
{
	u64 link = 0;
	u32 entry;

	if (!c->gc64)
		return c->link < c->snapshot->end ? c->trace->map[c->link++] : 0;
	entry = luajit_snapshot_entry(c->trace, c->snapshot, c->slot);
	return entry && luajit_trace_constant(c->trace, entry & 0xffff, &link) ? link : 0;
}

/* Where the function below a continuation goes on. */
static u64 read_continuation(struct chain *c)
{
	u64 pc = 0;
	u32 entry;

	if (!c->gc64)
		return c->link < c->snapshot->end ? c->trace->map[c->link++] : 0;
	entry = c->slot >= 2 ? luajit_snapshot_entry(c->trace, c->snapshot, c->slot - 2) : 0;
	return entry && luajit_trace_constant(c->trace, entry & 0xffff, &pc) ? pc : 0;
}

/* To the frame below. False: the links do not hold. */
static bool go_down(struct chain *c, u64 link)
{
	u32 instruction;
	u64 delta = link >> 3;

	if (!link)
		return false;
	switch (link & 3) {
	case LUAJIT_LINK_LUA:
		if (!memory_read(c->mem, &instruction, sizeof(instruction), link - 4))
			return false;
		delta = luajit_operand_a(instruction) + (c->gc64 ? 2 : 1);
		c->pc = link;
		c->running = false;
		break;
	case LUAJIT_LINK_VARG: /* the same function again; with LINK_P: called by pcall, inside a hook */
		if (link & LINK_P)
			c->pc = 0;
		break;
	case LUAJIT_LINK_CONT:
		c->pc = link & LINK_P ? 0 : read_continuation(c);
		c->running = false;
		break;
	default:
		return false;
	}
	if (!delta || delta > c->slot - c->base_slot)
		return false;
	c->slot -= (u32)delta;
	return true;
}

static bool is_second_frame(u64 link)
{
	return (link & 7) == LUAJIT_LINK_VARG;
}

/* The function at the base: what the stack says, unless the trace has called another in its place. */
static void push_base(struct chain *c, const struct frame *base, bool sound)
{
	struct luajit_constant fn = {.function = LUAJIT_LUA, .addr = frame_addr(base)};
	u32 entry = luajit_snapshot_entry(c->trace, c->snapshot, c->base_slot);
	const struct luajit_constant *instead = NULL;

	if (c->n == c->max)
		return;
	c->ret[c->n] = *base;
	if (sound && entry & LUAJIT_SNAP_FRAME)
		instead = luajit_trace_function(c->trace, luajit_snapshot_entry(c->trace, c->snapshot, 0) & 0xffff);
	if (instead && is_called_next(c, instead, 0))
		c->pc = 0;
	else if (instead && instead->function == LUAJIT_LUA)
		fn = *instead;
	if (!fn.sizebc && (luajit_function(base) != LUAJIT_LUA || !memory_read(c->mem, &fn.sizebc, sizeof(fn.sizebc),
	                                                                  fn.addr + c->trace->layout->proto_sizebc.at)))
		fn.addr = 0;
	if (!sound)
		c->pc = 0;
	if (fn.addr)
		make_lua(c, &fn, frame_flags(base) | FRAME_APPROX, &c->ret[c->n]);
	c->n++;
}

/* Inlined functions of a snapshot and the base: leaf first. before: at the instruction before it. base: the frame of
 * its function. */
static u32 expand_snapshot(const struct luajit_trace *t, struct memory *mem, const struct luajit_snapshot *s,
        bool before, const struct frame *base, u32 flags, struct frame *ret, u32 max)
{
	struct chain c = {.trace = t,
	        .snapshot = s,
	        .mem = mem,
	        .gc64 = luajit_gc64(t->layout),
	        .running = !before,
	        .begun = !before && !luajit_trace_ends(t, s),
	        .top = true,
	        .ret = ret,
	        .max = max};
	bool sound = start(&c);

	for (u32 i = 0; sound && c.slot > c.base_slot && i < FRAMES_MAX; i++) {
		struct luajit_constant fn;
		u64 link = read_link(&c);

		if (!is_second_frame(link) && !(flags & EXPAND_MERGE) &&
		        (!find_function(&c, &fn) || !push(&c, &fn, link)))
			sound = false;
		c.top = c.top && is_second_frame(link);
		sound = sound && go_down(&c, link);
	}
	if (!sound)
		c.n = 0;
	push_base(&c, base, sound);
	return c.n;
}

static bool is_ours(const struct frame *f, enum luajit_function function)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUAJIT && f->detail & LUAJIT_JIT &&
	       luajit_function(f) == function;
}

/* The trace itself as a frame: where it starts. */
static u32 put_trace(const struct luajit_trace *t, u32 flags, struct frame *ret)
{
	u64 pos = (t->startpc - t->startpt - t->layout->proto_size.at) / 4;

	if (!(flags & EXPAND_TRACES))
		return 0;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, FRAME_INLINED, t->startpt);
	ret->detail = luajit_detail(LUAJIT_MCODE, t->number, (u32)pos) | LUAJIT_JIT;
	return 1;
}

u32 luajit_expand(struct luajit_traces *traces, struct memory *mem, const struct frame *frames, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	const struct frame *mcode = frames + 1, *base = n > 2 && is_ours(frames + 2, LUAJIT_LUA) ? frames + 2 : NULL;
	const struct luajit_snapshot *snapshot;
	const struct luajit_trace *t;
	bool call, before;
	u64 pc;
	u32 put;

	*eaten = 0;
	if (n < 2 || max < RUNTIME_EXPAND_MAX || !is_ours(frames, LUAJIT_FAST) || !is_ours(mcode, LUAJIT_MCODE) ||
	        !luajit_traces_own(traces, mem, frame_addr(frames)))
		return 0;
	*eaten = base ? 3 : 2;
	pc = frame_addr(mcode);
	t = luajit_traces_find(
	        traces, mem, frame_addr(frames), pc, luajit_pos(mcode), (u32)(mcode->detail >> LUAJIT_COOKIE_BITS));
	if (!t) {
		if (base)
			ret[0] = *base;
		return base ? 1 : 0;
	}
	put = put_trace(t, flags, ret);
	if (!base)
		return put;
	call = frame_flags(mcode) & FRAME_RETADDR;
	snapshot = luajit_trace_snapshot(t, pc - call, call, &before);
	return put + expand_snapshot(t, mem, snapshot, before, base, flags, ret + put, max - put);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_trace.h"

#include <stdlib.h>
#include <string.h>

/*
 * Where snapshots begin to hold, for builds that do not store it (before 2021-03): from the code. A guard leaves a
 * trace by a jump to the stub of its exit (lj_asm_x86.h: push of the low byte of its number, then a short jump). That
 * number is the one of the snapshot to which the guard goes back. Between two guards a snapshot begins behind a call
 * rather than elsewhere, because LuaJIT makes one after something that it cannot undo.
 */

#define PUSH_BYTE  0x6a
#define CALLS_MAX  64
#define GUARD_SIZE 16 /* a load, a comparison and the jump of a guard */

struct places {
	struct luajit_trace *trace;
	struct memory *mem;
	u32 placed;           /* snapshots whose place is known */
	u32 from;             /* end of the last guard */
	u32 calls[CALLS_MAX]; /* ends of those since */
	u32 ncalls;
};

/* The target of a 32-bit relative operand. */
static u64 target_of(const struct luajit_trace *t, u32 operand)
{
	s32 distance = (s32)((u32)t->bytes[operand] | (u32)t->bytes[operand + 1] << 8 |
	                     (u32)t->bytes[operand + 2] << 16 | (u32)t->bytes[operand + 3] << 24);

	return t->code + operand + 4 + (u64)(s64)distance;
}

static bool is_inside(const struct luajit_trace *t, u64 addr)
{
	return addr - t->code < t->code_size;
}

/* Where the operand of the jump at `at` is; 0: no jump is there. */
static u32 jump_at(const struct luajit_trace *t, u32 at)
{
	const u8 *b = t->bytes + at;
	u32 room = t->code_size - at;

	if (room >= 6 && b[0] == 0x0f && (b[1] & 0xf0) == 0x80)
		return at + 2;
	return room >= 5 && b[0] == 0xe9 ? at + 1 : 0;
}

/* The number of the exit that a guard's jump goes to; false: it goes elsewhere. */
static bool exit_of(const struct places *p, u32 operand, u32 *ret)
{
	u64 target = target_of(p->trace, operand);
	u8 stub[3];
	u32 number;

	if (is_inside(p->trace, target) || !memory_read(p->mem, stub, sizeof(stub), target) || stub[0] != PUSH_BYTE ||
	        (stub[2] != 0xeb && stub[2] != PUSH_BYTE))
		return false;
	number = stub[1];
	while (number + 1 < p->placed) /* the low byte of it: exits come in order */
		number += 256;
	*ret = number;
	return number < p->trace->nsnapshots;
}

/* The end of the call instruction at `at`, direct or by a register; 0: no call is there. */
static u32 call_at(const struct places *p, u32 at)
{
	const u8 *b = p->trace->bytes + at;
	u32 room = p->trace->code_size - at;
	u8 byte;

	if (room >= 2 && b[0] == 0xff && (b[1] & 0xf8) == 0xd0)
		return at + 2;
	if (room < 5 || b[0] != 0xe8 || is_inside(p->trace, target_of(p->trace, at + 1)))
		return 0;
	return memory_read(p->mem, &byte, 1, target_of(p->trace, at + 1)) ? at + 5 : 0;
}

/* Places snapshots up to `last`, whose first guard is at `guard`: behind calls while there are any, then evenly. */
static void place_until(struct places *p, u32 last, u32 guard)
{
	struct luajit_snapshot *s = p->trace->snapshots;
	u32 from = p->from, end = guard > from + GUARD_SIZE ? guard - GUARD_SIZE : from, used = 0, left;

	while (p->placed <= last && used < p->ncalls)
		s[p->placed++].place = from = p->calls[used++];
	end = end > from ? end : from;
	left = last + 1 - p->placed;
	for (u32 i = 1; p->placed <= last; i++)
		s[p->placed++].place = from + (u32)((u64)(end - from) * i / left);
}

/* The loop begins here: so does the last snapshot of what precedes it. */
static void place_loop(struct places *p, u32 loop_ref, u32 at)
{
	struct luajit_snapshot *s = p->trace->snapshots;
	u32 last = p->placed - 1;

	while (last + 1 < p->trace->nsnapshots && s[last + 1].ref <= loop_ref)
		last++;
	if (last >= p->placed) {
		place_until(p, last, at);
		s[last].place = at;
	}
	p->from = at;
	p->ncalls = 0;
}

/*
 * Estimates the places of the snapshots of a build that does not keep them. loop_ref, loop: where the loop begins as IR
 * instruction and in the code; 0: there is none.
 */
static void luajit_trace_place(struct luajit_trace *t, struct memory *mem, u32 loop_ref, u32 loop)
{
	struct places p = {.trace = t, .mem = mem, .placed = 1};
	u32 operand, number, end;

	t->snapshots[0].place = 0;
	for (u32 at = 0; at < t->code_size; at = end ? end : at + 1) {
		if (loop_ref && loop && at >= loop) {
			place_loop(&p, loop_ref, loop);
			loop = 0;
		}
		operand = jump_at(t, at);
		end = operand ? 0 : call_at(&p, at);
		if (end && p.ncalls < CALLS_MAX)
			p.calls[p.ncalls++] = end;
		if (!operand || !exit_of(&p, operand, &number))
			continue;
		if (number >= p.placed)
			place_until(&p, number, at);
		end = operand + 4;
		p.from = end;
		p.ncalls = 0;
	}
	place_until(&p, t->nsnapshots - 1, t->code_size);
}

#define GCT_FUNC      8 /* ~LJ_TFUNC */
#define GCT_PROTO     7 /* ~LJ_TPROTO */
#define GCT_TRACE     9 /* ~LJ_TTRACE */
#define HEAD_MAX      256
#define SNAPSHOTS_MAX 4096 /* -Omaxsnap is 500 */
#define MAP_MAX       (1u << 20)
#define FUNCTIONS_MAX 512
#define LINK_LOOP     2 /* GCtrace.linktype */
#define SNAP_BYTES    32
#define CALL_NEAR     32 /* bytes from a call to the snapshot behind it: its result is put in place */

/* An IR instruction is 8 bytes: type and opcode are byte 4 and 5; a constant of 64 bits is in the next one. */
#define IR_TYPE(ins)   ((u32)((ins) >> 32) & 0x1f)
#define IR_OPCODE(ins) ((u32)((ins) >> 40) & 0xff)
#define IRT_PROTO      7
#define IRT_FUNC       8

static u64 member(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, bytes + m.at, m.size <= sizeof(value) ? m.size : sizeof(value));
	return value;
}

static bool read_head(const struct luajit_layout *l, struct memory *mem, u64 addr, u8 *head)
{
	return l->trace_size.at <= HEAD_MAX && memory_read(mem, head, l->trace_size.at, addr) &&
	       head[l->l_gct.at] == GCT_TRACE;
}

static bool head_of(const struct luajit_layout *l, const u8 *head, struct luajit_trace_head *ret)
{
	ret->code = member(head, l->trace_mcode);
	ret->code_size = (u32)member(head, l->trace_szmcode);
	ret->number = (u32)member(head, l->trace_traceno);
	return ret->number && ret->code_size && ret->code_size <= LUAJIT_MCODE_MAX;
}

bool luajit_trace_head(const struct luajit_layout *l, struct memory *mem, u64 addr, struct luajit_trace_head *ret)
{
	u8 head[HEAD_MAX];

	return read_head(l, mem, addr, head) && head_of(l, head, ret);
}

void luajit_trace_free(struct luajit_trace *t)
{
	if (!t)
		return;
	free(t->snapshots);
	free(t->map);
	free(t->ir);
	free(t->bytes);
	free(t->constants);
	free(t);
}

static void *copy(struct luajit_trace *t, struct memory *mem, u64 addr, u64 size)
{
	void *ret = malloc(size ? size : 1);

	if (ret && size && !memory_read(mem, ret, size, addr)) {
		free(ret);
		return NULL;
	}
	t->size += (u32)size;
	return ret;
}

static u32 opcode(const struct luajit_layout *l, const char *name)
{
	for (u32 i = 0; i < l->ir.n; i++)
		if (l->ir.names[i] && !strcmp(l->ir.names[i], name))
			return i;
	return ~0u;
}

static bool read_snapshots(struct luajit_trace *t, struct memory *mem, u64 addr)
{
	const struct luajit_layout *l = t->layout;
	u32 size = l->snap_size.at;
	u8 *bytes = size && size <= SNAP_BYTES ? copy(t, mem, addr, (u64)size * t->nsnapshots) : NULL;

	t->snapshots = calloc(t->nsnapshots, sizeof(*t->snapshots));
	for (u32 i = 0; bytes && t->snapshots && i < t->nsnapshots; i++) {
		struct luajit_snapshot *s = &t->snapshots[i];

		s->map = (u32)member(bytes + (u64)i * size, l->snap_mapofs);
		s->n = (u32)member(bytes + (u64)i * size, l->snap_nent);
		s->ref = (u32)member(bytes + (u64)i * size, l->snap_ref);
		s->place = l->snap_mcofs.size ? (u32)member(bytes + (u64)i * size, l->snap_mcofs) : 0;
		s->end = t->nmap;
		if (s->map > t->nmap || s->n > t->nmap - s->map)
			*s = (struct luajit_snapshot){.place = s->place};
		if (i)
			t->snapshots[i - 1].end = s->map;
	}
	t->size += t->nsnapshots * (u32)sizeof(*t->snapshots);
	free(bytes);
	return bytes && t->snapshots;
}

/* What a function or a prototype is. */
static bool read_function(const struct luajit_image *image, struct memory *mem, u64 addr, struct luajit_constant *ret)
{
	const struct luajit_layout *l = image->layout;
	u8 head[HEAD_MAX];
	u64 proto = addr;

	if (!memory_read(mem, head, image->vm.fn_f + 8u, addr))
		return false;
	if (head[l->l_gct.at] == GCT_FUNC) {
		u8 ffid = head[l->fn_ffid.at];

		ret->function = ffid > 1 ? LUAJIT_FAST : LUAJIT_C;
		ret->addr = ffid > 1 ? ffid : member(head, (struct layout_member){l->fn_f.at, 8});
		if (ffid)
			return true;
		proto = member(head, l->fn_pc) - l->proto_size.at;
	}
	if (!memory_read(mem, head, l->proto_sizebc.at + 4u, proto) || head[l->l_gct.at] != GCT_PROTO)
		return false;
	ret->function = LUAJIT_LUA;
	ret->addr = proto;
	ret->sizebc = (u32)member(head, l->proto_sizebc);
	return ret->sizebc > 0;
}

/* Functions among the constants. They grow downwards: what was used first is last. */
static bool read_constants(struct luajit_trace *t, const struct luajit_image *image, struct memory *mem)
{
	u32 kgc = opcode(t->layout, "KGC"), gc64 = luajit_gc64(t->layout), n = 0;
	struct luajit_constant *constants = calloc(FUNCTIONS_MAX, sizeof(*constants)), *fit;

	if (!constants)
		return false;
	for (u32 ref = t->nk; ref + gc64 < LUAJIT_REF_BIAS && n < FUNCTIONS_MAX; ref++) {
		u64 ins = t->ir[ref - t->nk], addr = gc64 ? t->ir[ref - t->nk + 1] : (u32)ins;

		if (IR_OPCODE(ins) != kgc || (IR_TYPE(ins) != IRT_PROTO && IR_TYPE(ins) != IRT_FUNC))
			continue;
		constants[n].ref = ref;
		constants[n].closure = IR_TYPE(ins) == IRT_FUNC;
		if (read_function(image, mem, addr, &constants[n]))
			n++;
	}
	t->nconstants = n;
	t->size += n * (u32)sizeof(*constants);
	fit = realloc(constants, (n ? n : 1) * sizeof(*constants));
	t->constants = fit ? fit : constants;
	return true;
}

/* The IR instruction that begins the loop, 0 if there is none. */
static u32 find_loop(struct luajit_trace *t, struct memory *mem, const u8 *head)
{
	const struct luajit_layout *l = t->layout;
	u32 end = (u32)member(head, l->trace_nins), loop = opcode(l, "LOOP"), ref = LUAJIT_REF_BIAS;
	u64 addr = member(head, l->trace_ir) + 8ull * LUAJIT_REF_BIAS, *ins;

	if (end <= ref || end > 2 * LUAJIT_REF_BIAS || !member(head, l->trace_mcloop))
		return 0;
	ins = malloc((end - ref) * sizeof(*ins));
	if (!ins || !memory_read(mem, ins, (end - ref) * sizeof(*ins), addr)) {
		free(ins);
		return 0;
	}
	while (ref < end && IR_OPCODE(ins[ref - LUAJIT_REF_BIAS]) != loop)
		ref++;
	free(ins);
	return ref < end ? ref : 0;
}

static bool read_parts(struct luajit_trace *t, const struct luajit_image *image, struct memory *mem, const u8 *head)
{
	const struct luajit_layout *l = t->layout;
	u64 ir = member(head, l->trace_ir);

	t->startpt = member(head, l->trace_startpt);
	t->startpc = member(head, l->trace_startpc);
	t->loops = member(head, l->trace_mcloop) || member(head, l->trace_linktype) == LINK_LOOP;
	t->nk = (u32)member(head, l->trace_nk);
	t->nmap = (u32)member(head, l->trace_nsnapmap);
	t->nsnapshots = (u32)member(head, l->trace_nsnap);
	if (!t->nk || t->nk > LUAJIT_REF_BIAS || t->nmap > MAP_MAX || !t->nsnapshots || t->nsnapshots > SNAPSHOTS_MAX)
		return false;
	t->bytes = copy(t, mem, t->code, t->code_size);
	t->map = copy(t, mem, member(head, l->trace_snapmap), (u64)t->nmap * sizeof(*t->map));
	t->ir = copy(t, mem, ir + (u64)t->nk * sizeof(*t->ir), (u64)(LUAJIT_REF_BIAS - t->nk) * sizeof(*t->ir));
	if (!t->bytes || !t->map || !t->ir || !read_snapshots(t, mem, member(head, l->trace_snap)))
		return false;
	if (!l->snap_mcofs.size)
		luajit_trace_place(t, mem, find_loop(t, mem, head), (u32)member(head, l->trace_mcloop));
	return read_constants(t, image, mem);
}

struct luajit_trace *luajit_trace_read(const struct luajit_image *image, struct memory *mem, u64 g, u64 addr)
{
	const struct luajit_layout *l = image->layout;
	struct luajit_trace_head info;
	struct luajit_trace *t;
	u8 head[HEAD_MAX];

	if (!read_head(l, mem, addr, head) || !head_of(l, head, &info))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->layout = l;
	t->addr = addr;
	t->g = g;
	t->code = info.code;
	t->code_size = info.code_size;
	t->number = info.number;
	t->size = sizeof(*t);
	if (!read_parts(t, image, mem, head)) {
		luajit_trace_free(t);
		return NULL;
	}
	return t;
}

static bool is_jump(const u8 *code)
{
	return (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) || code[0] == 0xe9;
}

bool luajit_trace_agrees(const struct luajit_trace *t, u64 pc, u32 cookie)
{
	u64 offset = pc - t->code, n = offset < t->code_size ? t->code_size - offset : 0;
	const u8 *code = t->bytes + offset, *seen = (const u8 *)&cookie;

	if (!n)
		return false;
	n = n < sizeof(cookie) ? n : sizeof(cookie);
	if (n == sizeof(cookie) && is_jump(code) && is_jump(seen))
		return code[0] == seen[0] && (code[0] == 0xe9 || code[1] == seen[1]);
	return !memcmp(code, seen, n);
}

const struct luajit_snapshot *luajit_trace_snapshot(const struct luajit_trace *t, u64 pc, bool call, bool *before)
{
	u32 i = t->nsnapshots - 1;
	u64 offset = pc - t->code, behind, ahead;

	while (i && t->snapshots[i].place > offset)
		i--;
	*before = false;
	if (i + 1 == t->nsnapshots)
		return &t->snapshots[i];
	behind = offset - t->snapshots[i].place;
	ahead = t->snapshots[i + 1].place - offset;
	*before = ahead < behind || (call && ahead <= CALL_NEAR);
	return &t->snapshots[i + *before];
}

bool luajit_trace_ends(const struct luajit_trace *t, const struct luajit_snapshot *s)
{
	return !t->loops && s + 1 == t->snapshots + t->nsnapshots;
}

u32 luajit_snapshot_entry(const struct luajit_trace *t, const struct luajit_snapshot *s, u32 slot)
{
	for (u32 i = 0; i < s->n; i++)
		if (t->map[s->map + i] >> 24 == slot)
			return t->map[s->map + i];
	return 0;
}

bool luajit_trace_constant(const struct luajit_trace *t, u32 ref, u64 *ret)
{
	if (ref < t->nk || ref + 1 >= LUAJIT_REF_BIAS)
		return false;
	*ret = t->ir[ref + 1 - t->nk];
	return true;
}

const struct luajit_constant *luajit_trace_function(const struct luajit_trace *t, u32 ref)
{
	for (u32 i = 0; i < t->nconstants; i++)
		if (t->constants[i].ref == ref)
			return &t->constants[i];
	return NULL;
}

const struct luajit_constant *luajit_trace_function_at(const struct luajit_trace *t, u64 pc)
{
	for (u32 i = 0; i < t->nconstants; i++) {
		const struct luajit_constant *c = &t->constants[i];

		if (c->function == LUAJIT_LUA && pc - (c->addr + t->layout->proto_size.at) < 4ull * c->sizebc)
			return c;
	}
	return NULL;
}

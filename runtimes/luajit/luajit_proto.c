/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GCT_STR   4 /* ~LJ_TSTR */
#define GCT_PROTO 7 /* ~LJ_TPROTO */
#define PROTO_MAX (4u << 20)
#define HEAD_MAX  256

/* Opcodes by name: the layout's table gives their numbers. */
static bool is_op(const struct luajit_layout *l, u32 instruction, const char *name)
{
	u8 op = (u8)instruction;

	return op < l->nops && !strcmp(l->ops[op].name, name);
}

static u8 operand_a(u32 instruction)
{
	return instruction >> 8 & 0xff;
}

static u8 operand_c(u32 instruction)
{
	return instruction >> 16 & 0xff;
}

static u16 operand_d(u32 instruction)
{
	return instruction >> 16;
}

static u32 get32(const u8 *bytes, u32 offset)
{
	u32 value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static u64 get64(const u8 *bytes, u32 offset)
{
	u64 value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* A Lua string, cut to LUAJIT_NAME_MAX - 1 bytes and at its first zero. */
static bool read_string(const struct luajit_layout *l, struct memory *mem, u64 addr, char *ret)
{
	u8 head[HEAD_MAX];
	u32 len;

	if (!memory_read(mem, head, l->str_size, addr) || head[l->vm.l_gct] != GCT_STR)
		return false;
	len = get32(head, l->str_len);
	if (len >= LUAJIT_NAME_MAX)
		len = LUAJIT_NAME_MAX - 1;
	if (!memory_read(mem, ret, len, addr + l->str_size))
		return false;
	ret[len] = '\0';
	return true;
}

struct luajit_proto *luajit_proto_read(const struct luajit_layout *l, struct memory *mem, u64 addr)
{
	struct luajit_proto *pt;
	u8 head[HEAD_MAX];
	u32 size, sizebc;

	if (!memory_read(mem, head, l->vm.proto_size, addr) || head[l->vm.l_gct] != GCT_PROTO)
		return NULL;
	size = get32(head, l->proto_sizept);
	sizebc = get32(head, l->vm.proto_sizebc);
	if (size > PROTO_MAX || size < l->vm.proto_size || !sizebc || sizebc > (size - l->vm.proto_size) / 4)
		return NULL;
	pt = malloc(sizeof(*pt) + size);
	if (!pt)
		return NULL;
	*pt = (struct luajit_proto){.layout = l, .addr = addr, .size = size, .sizebc = sizebc};
	if (!memory_read(mem, pt->bytes, size, addr) || get32(pt->bytes, l->vm.proto_sizebc) != sizebc) {
		free(pt);
		return NULL;
	}
	if (!read_string(l, mem, get64(pt->bytes, l->proto_chunkname), pt->chunk))
		pt->chunk[0] = '\0';
	return pt;
}

/* Where an array of the prototype begins, 0 if it is not within the prototype: then it was stripped. */
static u32 array_at(const struct luajit_proto *pt, u32 field)
{
	u64 offset = get64(pt->bytes, field) - pt->addr;

	return offset < pt->size ? (u32)offset : 0;
}

u32 luajit_proto_first_line(const struct luajit_proto *pt)
{
	return get32(pt->bytes, pt->layout->proto_firstline);
}

u32 luajit_proto_line_count(const struct luajit_proto *pt)
{
	return get32(pt->bytes, pt->layout->proto_numline);
}

u32 luajit_proto_instruction(const struct luajit_proto *pt, u32 pos)
{
	return pos < pt->sizebc ? get32(pt->bytes, pt->layout->vm.proto_size + pos * 4) : 0;
}

/* Lines are kept as distances from the first, in as few bytes as hold them; the header has none. */
u32 luajit_proto_line(const struct luajit_proto *pt, u32 pos)
{
	u32 lines = array_at(pt, pt->layout->proto_lineinfo), count = luajit_proto_line_count(pt);
	u32 width = count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 4, delta = 0;
	u64 at = lines + (u64)(pos - 1) * width;

	if (!lines || pos >= pt->sizebc)
		return 0;
	if (!pos)
		return luajit_proto_first_line(pt);
	if (at + width > pt->size)
		return 0;
	memcpy(&delta, pt->bytes + at, width);
	return luajit_proto_first_line(pt) + delta;
}

struct reader {
	const u8 *at, *end;
};

static u32 read_uleb(struct reader *r)
{
	u32 value = 0;

	for (u32 shift = 0; r->at < r->end && shift < 32; shift += 7) {
		u8 byte = *r->at++;

		value |= (u32)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static bool read_name(struct reader *r, char *ret)
{
	size_t room = r->end - r->at, len = strnlen((const char *)r->at, room);

	if (len == room)
		return false;
	snprintf(ret, LUAJIT_NAME_MAX, "%s", (const char *)r->at);
	r->at += len + 1;
	return true;
}

/* The local variable in a slot at pos: names with the stretch where they live, in order of slots; 1 to 6 are unnamed
 * ones. */
static bool variable_name(const struct luajit_proto *pt, u32 pos, u32 slot, char *ret)
{
	static const char *const fixed[] = {
	        "", "(for index)", "(for limit)", "(for step)", "(for generator)", "(for state)", "(for control)"};
	u32 at = array_at(pt, pt->layout->proto_varinfo), start = 0;
	struct reader r = {pt->bytes + at, pt->bytes + pt->size};

	while (at && r.at < r.end && *r.at) {
		u32 kind = *r.at, end;

		if (kind < sizeof(fixed) / sizeof(*fixed)) {
			strcpy(ret, fixed[kind]);
			r.at++;
		} else if (!read_name(&r, ret)) {
			return false;
		}
		start += read_uleb(&r);
		if (start > pos)
			return false;
		end = start + read_uleb(&r);
		if (pos < end && slot-- == 0)
			return true;
	}
	return false;
}

static bool upvalue_name(const struct luajit_proto *pt, u32 number, char *ret)
{
	u32 at = array_at(pt, pt->layout->proto_uvinfo);
	struct reader r = {pt->bytes + at, pt->bytes + pt->size};

	if (!at || number >= pt->bytes[pt->layout->proto_sizeuv])
		return false;
	for (u32 i = 0; i <= number; i++)
		if (!read_name(&r, ret))
			return false;
	return ret[0];
}

/* A string constant: collectable constants lie below k, the first right below. */
static bool constant_name(const struct luajit_proto *pt, struct memory *mem, u32 number, char *ret)
{
	u64 offset = get64(pt->bytes, pt->layout->proto_k) - pt->addr - 8ull * (number + 1);

	if (offset > pt->size - 8)
		return false;
	return read_string(pt->layout, mem, get64(pt->bytes, (u32)offset), ret);
}

enum origin { ORIGIN_NONE, ORIGIN_NAMED, ORIGIN_MOVED };

/* What an instruction that puts something into a slot tells of its name. */
static enum origin value_name(const struct luajit_proto *pt, struct memory *mem, u32 instruction, char *ret)
{
	const struct luajit_layout *l = pt->layout;
	bool named = false;

	if (is_op(l, instruction, "MOV"))
		return ORIGIN_MOVED;
	if (is_op(l, instruction, "GGET"))
		named = constant_name(pt, mem, operand_d(instruction), ret);
	else if (is_op(l, instruction, "TGETS"))
		named = constant_name(pt, mem, operand_c(instruction), ret);
	else if (is_op(l, instruction, "UGET"))
		named = upvalue_name(pt, operand_d(instruction), ret);
	return named ? ORIGIN_NAMED : ORIGIN_NONE;
}

/* Goes back from pos to where the value in a slot came from. */
static bool slot_name(const struct luajit_proto *pt, struct memory *mem, u32 pos, u32 slot, char *ret)
{
	const struct luajit_layout *l = pt->layout;

	if (variable_name(pt, pos, slot, ret))
		return true;
	while (--pos > 0 && pos < pt->sizebc) {
		u32 instruction = luajit_proto_instruction(pt, pos);
		u8 op = (u8)instruction, a = operand_a(instruction);
		enum origin origin;

		if (op >= l->nops)
			return false;
		if (l->ops[op].a == OPERAND_BASE && slot >= a &&
		        (!is_op(l, instruction, "KNIL") || slot <= operand_d(instruction)))
			return false;
		if (l->ops[op].a != OPERAND_DST || a != slot)
			continue;
		origin = value_name(pt, mem, instruction, ret);
		if (origin != ORIGIN_MOVED)
			return origin == ORIGIN_NAMED;
		slot = operand_d(instruction);
		if (variable_name(pt, pos, slot, ret))
			return true;
	}
	return false;
}

bool luajit_proto_callee(const struct luajit_proto *pt, struct memory *mem, u32 pos, char *ret)
{
	const struct luajit_layout *l = pt->layout;
	u32 instruction = luajit_proto_instruction(pt, pos);
	const char *metamethod;

	if (!pos || pos >= pt->sizebc || (u8)instruction >= l->nops)
		return false;
	metamethod = l->ops[(u8)instruction].metamethod;
	if (!metamethod)
		return false;
	if (strcmp(metamethod, "call")) {
		strcpy(ret, metamethod);
		return true;
	}
	/* the iterator of a `for` was copied up from three slots below */
	return slot_name(pt, mem, pos, operand_a(instruction) - (is_op(l, instruction, "ITERC") ? 3 : 0), ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GCT_STR   4 /* ~LJ_TSTR */
#define GCT_PROTO 7 /* ~LJ_TPROTO */
#define PROTO_MAX (4u << 20)
#define PAGE      4096u
/* Most prototypes and most chunk names are shorter. */
#define PROTO_AHEAD  512
#define STRING_AHEAD 128
#define TEXT_MAX     (1u << 20)

static bool is_op(u32 instruction, const char *name)
{
	u8 op = (u8)instruction;

	return op < LUAJIT_OPS && !strcmp(luajit_ops[op].name, name);
}

static u32 get32(const u8 *bytes, u32 offset)
{
	u32 value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* A reference: 8 or 4 bytes. */
static u64 get_ref(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, bytes + m.at, m.size <= sizeof(value) ? m.size : sizeof(value));
	return value;
}

/*
 * A read is a system call, whatever its size: objects are read with what follows them in one go, and what is not there
 * by then is read after that. Returns how much was read, at least min; 0: not even that.
 */
static u32 read_ahead(struct memory *mem, u8 *dst, u32 min, u32 max, u64 addr)
{
	u32 page = (u32)(PAGE - addr % PAGE), n = max < page ? max : page;

	n = n < min ? min : n;
	return memory_read(mem, dst, n, addr) ? n : 0;
}

/* A Lua string, cut to LUAJIT_NAME_MAX - 1 bytes and at its first zero. */
static bool read_string(const struct luajit_layout *l, struct memory *mem, u64 addr, char *ret)
{
	u32 head = l->str_size.at, got, len;
	u8 bytes[STRING_AHEAD];

	if (head > sizeof(bytes))
		return false;
	got = read_ahead(mem, bytes, head, sizeof(bytes), addr);
	if (!got || bytes[l->l_gct.at] != GCT_STR)
		return false;
	len = get32(bytes, l->str_len.at);
	if (len >= LUAJIT_NAME_MAX)
		len = LUAJIT_NAME_MAX - 1;
	if (len <= got - head)
		memcpy(ret, bytes + head, len);
	else if (!memory_read(mem, ret, len, addr + head))
		return false;
	ret[len] = '\0';
	return true;
}

/* Sizes that can be: *size is that of the whole prototype. */
static bool read_sizes(const struct luajit_layout *l, const u8 *bytes, u32 *size, u32 *sizebc)
{
	*size = get32(bytes, l->proto_sizept.at);
	*sizebc = get32(bytes, l->proto_sizebc.at);
	return bytes[l->l_gct.at] == GCT_PROTO && *size <= PROTO_MAX && *size >= l->proto_size.at && *sizebc &&
	       *sizebc <= (*size - l->proto_size.at) / 4;
}

struct luajit_proto *luajit_proto_read(const struct luajit_layout *l, struct memory *mem, u64 addr)
{
	struct luajit_proto *pt;
	u8 bytes[PROTO_AHEAD];
	u32 size, sizebc, got;

	if (l->proto_size.at > sizeof(bytes))
		return NULL;
	got = read_ahead(mem, bytes, l->proto_size.at, sizeof(bytes), addr);
	if (!got || !read_sizes(l, bytes, &size, &sizebc))
		return NULL;
	pt = malloc(sizeof(*pt) + size);
	if (!pt)
		return NULL;
	*pt = (struct luajit_proto){.layout = l, .addr = addr, .size = size, .sizebc = sizebc};
	if (size <= got)
		memcpy(pt->bytes, bytes, size);
	else if (!memory_read(mem, pt->bytes, size, addr) || get32(pt->bytes, l->proto_sizebc.at) != sizebc) {
		free(pt);
		return NULL;
	}
	if (!read_string(l, mem, get_ref(pt->bytes, l->proto_chunkname), pt->chunk))
		pt->chunk[0] = '\0';
	return pt;
}

void luajit_proto_free(struct luajit_proto *pt)
{
	free(pt->definition);
	free(pt->owner);
	free(pt);
}

char *luajit_proto_text(const struct luajit_proto *pt, struct memory *mem, size_t *len)
{
	const struct luajit_layout *l = pt->layout;
	u64 addr = get_ref(pt->bytes, l->proto_chunkname);
	u32 head = l->str_size.at;
	u8 bytes[STRING_AHEAD];
	char *text;

	if (!addr || head > sizeof(bytes) || !memory_read(mem, bytes, head, addr) || bytes[l->l_gct.at] != GCT_STR)
		return NULL;
	*len = get32(bytes, l->str_len.at);
	text = *len <= TEXT_MAX ? malloc(*len + 1) : NULL;
	if (!text)
		return NULL;
	text[*len] = '\0';
	if (memory_read(mem, text, *len, addr + head))
		return text;
	free(text);
	return NULL;
}

/* Where an array of the prototype begins, 0 if it is not within the prototype: then it was stripped. */
static u32 array_at(const struct luajit_proto *pt, struct layout_member field)
{
	u64 offset = get_ref(pt->bytes, field) - pt->addr;

	return offset < pt->size ? (u32)offset : 0;
}

u32 luajit_proto_first_line(const struct luajit_proto *pt)
{
	return get32(pt->bytes, pt->layout->proto_firstline.at);
}

u32 luajit_proto_line_count(const struct luajit_proto *pt)
{
	return get32(pt->bytes, pt->layout->proto_numline.at);
}

u32 luajit_proto_instruction(const struct luajit_proto *pt, u32 pos)
{
	return pos < pt->sizebc ? get32(pt->bytes, pt->layout->proto_size.at + pos * 4) : 0;
}

/* GCproto: the number of parameters is the byte before the size of the frame (lj_obj.h). */
u32 luajit_proto_parameters(const struct luajit_proto *pt, bool *vararg)
{
	*vararg = (u8)luajit_proto_instruction(pt, 0) >= LUAJIT_OP_FUNCV;
	return pt->bytes[pt->layout->proto_framesize.at - 1];
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

	if (!at || number >= pt->bytes[pt->layout->proto_sizeuv.at])
		return false;
	for (u32 i = 0; i <= number; i++)
		if (!read_name(&r, ret))
			return false;
	return ret[0];
}

/* A collectable constant: they lie below k, the first right below. 0: there is none of this number. */
static u64 constant(const struct luajit_proto *pt, u32 number)
{
	struct layout_member k = pt->layout->proto_k;
	u64 offset = get_ref(pt->bytes, k) - pt->addr - (u64)k.size * (number + 1);

	k.at = 0;
	return offset > pt->size - k.size ? 0 : get_ref(pt->bytes + offset, k);
}

static bool constant_name(const struct luajit_proto *pt, struct memory *mem, u32 number, char *ret)
{
	u64 addr = constant(pt, number);

	return addr && read_string(pt->layout, mem, addr, ret);
}

enum origin { ORIGIN_NONE, ORIGIN_NAMED, ORIGIN_MOVED };

/* What is known of a value's name from the instruction that puts it into a slot. */
static enum origin value_name(const struct luajit_proto *pt, struct memory *mem, u32 instruction, char *ret)
{
	bool named = false;

	if (is_op(instruction, "MOV"))
		return ORIGIN_MOVED;
	if (is_op(instruction, "GGET"))
		named = constant_name(pt, mem, luajit_operand_d(instruction), ret);
	else if (is_op(instruction, "TGETS"))
		named = constant_name(pt, mem, luajit_operand_c(instruction), ret);
	else if (is_op(instruction, "UGET"))
		named = upvalue_name(pt, luajit_operand_d(instruction), ret);
	return named ? ORIGIN_NAMED : ORIGIN_NONE;
}

/* Goes back from pos to where the value in a slot came from. */
static bool slot_name(const struct luajit_proto *pt, struct memory *mem, u32 pos, u32 slot, char *ret)
{

	if (variable_name(pt, pos, slot, ret))
		return true;
	while (--pos > 0 && pos < pt->sizebc) {
		u32 instruction = luajit_proto_instruction(pt, pos);
		u8 op = (u8)instruction, a = luajit_operand_a(instruction);
		enum origin origin;

		if (op >= LUAJIT_OPS)
			return false;
		if (luajit_ops[op].a == OPERAND_BASE && slot >= a &&
		        (!is_op(instruction, "KNIL") || slot <= luajit_operand_d(instruction)))
			return false;
		if (luajit_ops[op].a != OPERAND_DST || a != slot)
			continue;
		origin = value_name(pt, mem, instruction, ret);
		if (origin != ORIGIN_MOVED)
			return origin == ORIGIN_NAMED;
		slot = luajit_operand_d(instruction);
		if (variable_name(pt, pos, slot, ret))
			return true;
	}
	return false;
}

bool luajit_proto_callee(const struct luajit_proto *pt, struct memory *mem, u32 pos, char *ret)
{
	u32 instruction = luajit_proto_instruction(pt, pos);
	const char *metamethod;

	if (!pos || pos >= pt->sizebc || (u8)instruction >= LUAJIT_OPS)
		return false;
	metamethod = luajit_ops[(u8)instruction].metamethod;
	if (!metamethod)
		return false;
	if (strcmp(metamethod, "call")) {
		strcpy(ret, metamethod);
		return true;
	}
	/* the iterator of a `for` was copied up from three slots below */
	return slot_name(pt, mem, pos, luajit_operand_a(instruction) - (is_op(instruction, "ITERC") ? 3 : 0), ret);
}

struct error *luajit_proto_inner(
        const struct luajit_proto *pt, struct error *(*each)(void *ctx, u64 maker, u64 inner), void *ctx)
{
	struct error *err = NULL;

	for (u32 pos = 1; !err && pos < pt->sizebc; pos++) {
		u32 instruction = luajit_proto_instruction(pt, pos);
		u64 inner = is_op(instruction, "FNEW") ? constant(pt, luajit_operand_d(instruction)) : 0;

		if (inner)
			err = each(ctx, pt->addr, inner);
	}
	return err;
}

bool luajit_proto_parameter(const struct luajit_proto *pt, u32 number, char *ret)
{
	return variable_name(pt, 1, number, ret);
}

bool luajit_proto_is_method(const struct luajit_proto *pt)
{
	char first[LUAJIT_NAME_MAX];

	return variable_name(pt, 1, 0, first) && !strcmp(first, "self");
}

/* The instruction behind the one that makes a function may store it. */
static bool stored_name(const struct luajit_proto *pt, struct memory *mem, u32 pos, u32 slot, char *ret)
{
	u32 instruction = luajit_proto_instruction(pt, pos);
	char table[LUAJIT_NAME_MAX], key[LUAJIT_NAME_MAX];

	if (luajit_operand_a(instruction) != slot)
		return false;
	if (is_op(instruction, "GSET"))
		return constant_name(pt, mem, luajit_operand_d(instruction), ret);
	if (!is_op(instruction, "TSETS") || !constant_name(pt, mem, luajit_operand_c(instruction), key))
		return false;
	if (!slot_name(pt, mem, pos, instruction >> 24, table))
		table[0] = '\0';
	snprintf(ret, LUAJIT_NAME_MAX, "%.200s%s%.200s", table, table[0] ? "." : "", key);
	return true;
}

bool luajit_proto_defines(const struct luajit_proto *pt, struct memory *mem, u64 inner, char *ret)
{
	for (u32 pos = 1; pos < pt->sizebc; pos++) {
		u32 instruction = luajit_proto_instruction(pt, pos), slot = luajit_operand_a(instruction);

		if (is_op(instruction, "FNEW") && constant(pt, luajit_operand_d(instruction)) == inner)
			return stored_name(pt, mem, pos + 1, slot, ret) || variable_name(pt, pos + 1, slot, ret);
	}
	return false;
}

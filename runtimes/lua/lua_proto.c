/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_proto.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define PROTO_BYTES          160
#define STRING_DATA          24 /* of a TString: behind its header, in 5.1 to 5.5 (lstring.h: getstr, getshrstr) */
#define STRING_TYPE          8
#define STRING_LONG          11      /* 5.5: shrlen, below 0 for a long string, whose text is elsewhere */
#define ABSOLUTE             (-0x80) /* ldebug.h: ABSLINEINFO, in lineinfo of 5.4 on: the line is in abslineinfo */
#define PROTOTYPE_BEFORE_504 9       /* LUA_TPROTO (lobject.h) */
#define PROTOTYPE            10
#define VARARG_505           3 /* PF_VAHID, PF_VATAB */
#define TSTRING              4 /* LUA_TSTRING, and its variants above */

struct abs_line { /* AbsLineInfo */
	s32 pc, line;
};

static u32 take_int(const u8 *bytes, struct layout_member m)
{
	u32 value = 0;

	if (m.size && m.at + sizeof(value) <= PROTO_BYTES)
		memcpy(&value, bytes + m.at, sizeof(value));
	return value;
}

static u64 take_pointer(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	if (m.size && m.at + sizeof(value) <= PROTO_BYTES)
		memcpy(&value, bytes + m.at, sizeof(value));
	return value;
}

/* lobject.h: numparams and is_vararg, in 5.5 flag, come right before maxstacksize. */
static void take_parameters(struct lua_proto *p, const u8 *bytes, struct layout_member maxstacksize)
{
	if (!maxstacksize.size || maxstacksize.at < 2 || maxstacksize.at >= PROTO_BYTES)
		return;
	p->parameters = bytes[maxstacksize.at - 2];
	p->vararg = bytes[maxstacksize.at - 1] & (p->version >= 505 ? VARARG_505 : 0xff);
}

bool lua_string_read(u32 version, struct memory *mem, u64 addr, char *ret, size_t size)
{
	u64 text = addr + STRING_DATA;
	s8 length;
	u8 type;

	if (!addr || !memory_read(mem, &type, sizeof(type), addr + STRING_TYPE) || (type & 0xf) != TSTRING)
		return false;
	if (version >= 505 && (!memory_read(mem, &length, sizeof(length), addr + STRING_LONG) ||
	                              (length < 0 && !memory_read(mem, &text, sizeof(text), text))))
		return false;
	return memory_string(mem, ret, size, text);
}

bool lua_constant_string(const struct lua_proto *p, struct memory *mem, u32 index, char *ret, size_t size)
{
	u64 value[2]; /* a TValue */

	if (index >= p->sizek || !memory_read(mem, value, sizeof(value), p->k + (u64)index * sizeof(value)))
		return false;
	return (value[1] & 0xf) == TSTRING && lua_string_read(p->version, mem, value[0], ret, size);
}

/* 5.1 to 5.3: a line for each instruction. */
static bool read_lines(struct lua_proto *p, struct memory *mem, u64 at)
{
	return memory_read(mem, p->lines, (size_t)p->sizecode * sizeof(*p->lines), at);
}

/* From 5.4 on: differences of one byte, and absolute ones where they do not do. */
static bool read_differences(struct lua_proto *p, struct memory *mem, u64 at, u64 absolute, u32 nabsolute)
{
	cleanup(free) s8 *differences = malloc(p->sizecode);
	cleanup(free) struct abs_line *lines =
	        nabsolute <= p->sizecode ? malloc((nabsolute + 1) * sizeof(*lines)) : NULL;
	s32 line = (s32)p->linedefined;
	u32 next = 0;

	if (!differences || !lines || !memory_read(mem, differences, p->sizecode, at) ||
	        (nabsolute && !memory_read(mem, lines, nabsolute * sizeof(*lines), absolute)))
		return false;
	for (u32 i = 0; i < p->sizecode; i++) {
		if (differences[i] != ABSOLUTE)
			line += differences[i];
		while (next < nabsolute && lines[next].pc < (s32)i)
			next++;
		if (next < nabsolute && lines[next].pc == (s32)i)
			line = lines[next].line;
		p->lines[i] = line;
	}
	return true;
}

/* Lines of a function lie within it: else its memory has been given to others since. */
static bool are_lines(const struct lua_proto *p)
{
	for (u32 i = 0; p->lines && p->linedefined && i < p->sizecode; i++)
		if ((u32)p->lines[i] < p->linedefined || (u32)p->lines[i] > p->lastlinedefined)
			return false;
	return true;
}

static void find_lines(struct lua_proto *p, const struct lua_layout *l, struct memory *mem, const u8 *bytes)
{
	u64 at = take_pointer(bytes, l->p_lineinfo);
	bool ok;

	if (take_int(bytes, l->p_sizelineinfo) != p->sizecode || !at)
		return;
	p->lines = calloc(p->sizecode, sizeof(*p->lines));
	if (!p->lines)
		return;
	ok = l->p_abslineinfo.size ? read_differences(p, mem, at, take_pointer(bytes, l->p_abslineinfo),
	                                     take_int(bytes, l->p_sizeabslineinfo))
	                           : read_lines(p, mem, at);
	if (!ok) {
		free(p->lines);
		p->lines = NULL;
	}
}

/* Its type, in the header that free() overwrites. */
static bool is_prototype(const struct lua_image *image, struct memory *mem, u64 addr)
{
	u8 type;

	return memory_read(mem, &type, sizeof(type), addr + image->layout->l_tt.at) &&
	       type == (image->vm.version >= 504 ? PROTOTYPE : PROTOTYPE_BEFORE_504);
}

bool lua_proto_cookie(const struct lua_image *image, struct memory *mem, u64 addr, u32 *ret)
{
	const struct lua_layout *l = image->layout;
	u32 size, first, last;
	u64 code;

	if (!memory_read(mem, &code, sizeof(code), addr + l->p_code.at) ||
	        !memory_read(mem, &size, sizeof(size), addr + l->p_sizecode.at) ||
	        !memory_read(mem, &first, sizeof(first), addr + l->p_linedefined.at) ||
	        !memory_read(mem, &last, sizeof(last), addr + l->p_lastlinedefined.at))
		return false;
	*ret = lua_cookie(code, size, first, last);
	return is_prototype(image, mem, addr);
}

struct lua_proto *lua_proto_read(const struct lua_image *image, struct memory *mem, u64 addr)
{
	const struct lua_layout *l = image->layout;
	struct lua_proto *p;
	u8 bytes[PROTO_BYTES] = {0};
	u32 sizecode;
	u64 code;

	if (!memory_read(mem, bytes, l->p_source.at + 8u <= 128 ? 128 : PROTO_BYTES, addr))
		return NULL;
	sizecode = take_int(bytes, l->p_sizecode);
	code = take_pointer(bytes, l->p_code);
	p = sizecode && sizecode <= LUA_CODE_MAX ? calloc(1, sizeof(*p) + (size_t)sizecode * sizeof(u32)) : NULL;
	if (!p)
		return NULL;
	p->addr = addr;
	p->version = image->vm.version;
	p->sizecode = sizecode;
	p->sizek = take_int(bytes, l->p_sizek);
	p->sizelocvars = take_int(bytes, l->p_sizelocvars);
	p->sizeupvalues = take_int(bytes, l->p_sizeupvalues);
	p->linedefined = take_int(bytes, l->p_linedefined);
	p->lastlinedefined = take_int(bytes, l->p_lastlinedefined);
	take_parameters(p, bytes, l->p_maxstacksize);
	p->k = take_pointer(bytes, l->p_k);
	p->locvars = take_pointer(bytes, l->p_locvars);
	p->upvalues = take_pointer(bytes, l->p_upvalues);
	p->text = take_pointer(bytes, l->p_source);
	p->cookie = lua_cookie(code, sizecode, p->linedefined, p->lastlinedefined);
	if (!memory_read(mem, p->code, (size_t)sizecode * sizeof(u32), code)) {
		free(p);
		return NULL;
	}
	if (!lua_string_read(p->version, mem, p->text, p->source, sizeof(p->source)))
		strcpy(p->source, "=?");
	find_lines(p, l, mem, bytes);
	if (!are_lines(p) || !is_prototype(image, mem, addr)) {
		lua_proto_free(p);
		return NULL;
	}
	return p;
}

void lua_proto_free(struct lua_proto *p)
{
	if (!p)
		return;
	free(p->lines);
	free(p->definition);
	free(p);
}

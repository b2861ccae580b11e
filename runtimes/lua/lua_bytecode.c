/* SPDX-License-Identifier: Apache-2.0 */
/* What bytecode calls a function: symbolic execution as in Lua's own ldebug.c (getobjname, findsetreg), of 5.1 to 5.5.
 */
#include <stdio.h>
#include <string.h>

#include "lua_proto.h"

#define DEPTH_MAX 4 /* MOVEs that are followed */
#define NONE      0xff
#define RK_BIT    0x100 /* up to 5.3: the operand is a constant */

/* Numbers of opcodes (lopcodes.h), and which of them set register A (luaP_opmodes). */
struct dialect {
	u8 move, loadk, loadnil, getupval, getglobal, gettabup, gettable, getfield, self, call, tailcall, tforcall, jmp;
	u64 sets_a[2];
};

static const struct dialect dialects[] = {
        {0, 1, 3, 4, 5, NONE, 6, NONE, 11, 28, 29, 33, 22, {0x31bc3ffc7full, 0}},           /* 5.1 */
        {0, 1, 4, 5, NONE, 6, 7, NONE, 12, 29, 30, 34, 23, {0x6b707ff8ffull, 0}},           /* 5.2 */
        {0, 1, 4, 5, NONE, 6, 7, NONE, 12, 36, 37, 41, 30, {0x35b83ffff8ffull, 0}},         /* 5.3 */
        {0, 3, 8, 9, NONE, 11, 12, 14, 20, 68, 69, 76, 56, {0x3e3ffffff87bffull, 0x3a638}}, /* 5.4 */
        {0, 3, 8, 9, NONE, 11, 12, 14, 20, 68, 69, 76, 56, {0x3e3ffffff87bffull, 0xba638}}, /* 5.5 */
};

struct operands {
	u32 op, a, b, c, bx;
	s32 jump;
};

static struct operands decode(const struct lua_proto *p, u32 pos)
{
	u32 i = pos < p->sizecode ? p->code[pos] : 0;

	if (p->version >= 504)
		return (struct operands){.op = i & 0x7f,
		        .a = i >> 7 & 0xff,
		        .b = i >> 16 & 0xff,
		        .c = i >> 24,
		        .bx = i >> 15,
		        .jump = (s32)(i >> 7) - 0xffffff};
	return (struct operands){.op = i & 0x3f,
	        .a = i >> 6 & 0xff,
	        .b = i >> 23,
	        .c = i >> 14 & 0x1ff,
	        .bx = i >> 14,
	        .jump = (s32)(i >> 14) - 0x1ffff};
}

static const struct dialect *dialect_of(const struct lua_proto *p)
{
	return &dialects[p->version - 501];
}

static bool sets_register(const struct lua_proto *p, const struct operands *o, u32 reg)
{
	const struct dialect *d = dialect_of(p);

	if (o->op == d->loadnil) /* 5.1: registers A to B, later A to A + B */
		return reg >= o->a && reg <= (p->version == 501 ? o->b : o->a + o->b);
	if (o->op == d->tforcall)
		return reg >= o->a + 2;
	if (o->op == d->call || o->op == d->tailcall)
		return reg >= o->a;
	if (o->op == d->self && reg == o->a + 1)
		return true;
	return o->op < 128 && d->sets_a[o->op / 64] >> (o->op % 64) & 1 && reg == o->a;
}

/*
 * 5.1: behind OP_CLOSURE stands an instruction for each upvalue, which is not run: OP_MOVE or OP_GETUPVAL, register A
 * is 0 (lvm.c). One that runs sets a local variable there, which has a name.
 */
#define CLOSURE_501 36
static bool is_capture(const struct lua_proto *p, const struct operands *o)
{
	return !o->a && (o->op == dialect_of(p)->move || o->op == dialect_of(p)->getupval);
}

/* The last instruction before last that set reg, on any way that leads there; -1: none, or more than one way. */
static s32 find_setter(const struct lua_proto *p, u32 last, u32 reg)
{
	const struct dialect *d = dialect_of(p);
	s32 setter = -1;
	u32 target = 0; /* code before it is conditional */
	bool follows_closure = false;

	for (u32 pos = 0; pos < last; pos++) {
		struct operands o = decode(p, pos);

		if (follows_closure && is_capture(p, &o))
			continue;
		follows_closure = p->version == 501 && o.op == CLOSURE_501;
		if (o.op == d->jmp) {
			s64 to = (s64)pos + 1 + o.jump;

			if (to > pos && to <= last && to > target)
				target = (u32)to;
		} else if (sets_register(p, &o, reg)) {
			setter = pos < target ? -1 : (s32)pos;
		}
	}
	return setter;
}

static bool local_name(const struct lua_proto *p, struct memory *mem, u32 reg, u32 pos, char ret[LUA_NAME_MAX])
{
	struct {
		u64 name;
		s32 start, end;
	} v; /* LocVar */

	for (u32 i = 0, active = 0; i < p->sizelocvars && i < 256; i++) {
		if (!memory_read(mem, &v, sizeof(v), p->locvars + i * sizeof(v)) || v.start > (s32)pos)
			return false;
		if ((s32)pos < v.end && active++ == reg)
			return lua_string_read(p->version, mem, v.name, ret, LUA_NAME_MAX) && ret[0] != '(';
	}
	return false;
}

static bool upvalue_name(const struct lua_proto *p, struct memory *mem, u32 i, char ret[LUA_NAME_MAX])
{
	u32 size = p->version == 501 ? 8 : 16; /* TString *, or an Upvaldesc that begins with it */
	u64 name;

	return i < p->sizeupvalues && memory_read(mem, &name, sizeof(name), p->upvalues + (u64)i * size) &&
	       lua_string_read(p->version, mem, name, ret, LUA_NAME_MAX);
}

/* The string that operand C of an access is: a constant, up to 5.3 behind RK_BIT, else in a register that holds one. */
static bool key_name(
        const struct lua_proto *p, struct memory *mem, u32 pos, u32 c, bool constant, char ret[LUA_NAME_MAX])
{
	s32 setter;
	struct operands o;

	if (constant)
		return lua_constant_string(p, mem, c, ret, LUA_NAME_MAX);
	setter = find_setter(p, pos, c);
	if (setter < 0)
		return false;
	o = decode(p, (u32)setter);
	return o.op == dialect_of(p)->loadk && lua_constant_string(p, mem, o.bx, ret, LUA_NAME_MAX);
}

/* What the value in reg is called at pos. */
static bool register_name(const struct lua_proto *p, struct memory *mem, u32 reg, u32 pos, char ret[LUA_NAME_MAX])
{
	const struct dialect *d = dialect_of(p);
	bool rk = p->version < 504;

	for (u32 depth = 0; depth < DEPTH_MAX; depth++) {
		struct operands o;
		s32 setter;

		if (local_name(p, mem, reg, pos, ret))
			return true;
		setter = find_setter(p, pos, reg);
		if (setter < 0)
			return false;
		pos = (u32)setter;
		o = decode(p, pos);
		if (o.op == d->getglobal)
			return lua_constant_string(p, mem, o.bx, ret, LUA_NAME_MAX);
		if (o.op == d->gettabup || o.op == d->getfield)
			return key_name(p, mem, pos, rk ? o.c & ~RK_BIT : o.c, !rk || o.c & RK_BIT, ret);
		if (o.op == d->gettable)
			return key_name(p, mem, pos, rk ? o.c & ~RK_BIT : o.c, rk && o.c & RK_BIT, ret);
		if (o.op == d->self) /* from 5.4 on bit k of the instruction says that C is a constant; in 5.5 it always
		                        is */
			return key_name(p, mem, pos, rk ? o.c & ~RK_BIT : o.c,
			        rk ? o.c & RK_BIT : p->version >= 505 || p->code[pos] >> 15 & 1, ret);
		if (o.op == d->getupval)
			return upvalue_name(p, mem, o.b, ret);
		if (o.op != d->move || o.b >= o.a)
			return false;
		reg = o.b;
	}
	return false;
}

bool lua_proto_callee(const struct lua_proto *p, struct memory *mem, u32 pos, char ret[LUA_NAME_MAX])
{
	const struct dialect *d = dialect_of(p);
	struct operands o = decode(p, pos);

	if (pos >= p->sizecode)
		return false;
	if (o.op == d->call || o.op == d->tailcall)
		return register_name(p, mem, o.a, pos, ret);
	if (o.op != d->tforcall)
		return false;
	strcpy(ret, "for iterator");
	return true;
}

/* --- definitions, and where calls begin and end --- */

/* Numbers of more opcodes. store: into a table with the key B (up to 5.3 behind RK_BIT) and the value C. */
struct ways {
	u8 setglobal, settabup, settable, setfield, closure, first_return, last_return, varargprep;
};

static const struct ways ways[] = {
        {7, NONE, 9, NONE, 36, 30, 30, NONE},  /* 5.1 */
        {NONE, 8, 10, NONE, 37, 31, 31, NONE}, /* 5.2 */
        {NONE, 8, 10, NONE, 44, 38, 38, NONE}, /* 5.3 */
        {NONE, 15, 16, 18, 79, 70, 72, 81},    /* 5.4 */
        {NONE, 15, 16, 18, 79, 70, 72, 81},    /* 5.5 */
};

/* "t" of a store into a field of what is in this register; "" if it has no name, or is all globals. */
static void table_name(const struct lua_proto *p, struct memory *mem, u32 reg, u32 pos, char ret[LUA_NAME_MAX])
{
	if (!register_name(p, mem, reg, pos, ret))
		ret[0] = '\0';
}

static bool stored_name(const struct lua_proto *p, struct memory *mem, u32 pos, u32 reg, char ret[LUA_NAME_MAX])
{
	const struct ways *w = &ways[p->version - 501];
	struct operands o = decode(p, pos);
	char table[LUA_NAME_MAX], key[LUA_NAME_MAX];
	bool rk = p->version < 504;

	if (o.op == w->setglobal && o.a == reg)
		return lua_constant_string(p, mem, o.bx, ret, LUA_NAME_MAX);
	if ((o.op != w->settabup && o.op != w->settable && o.op != w->setfield) || o.c != reg ||
	        !key_name(p, mem, pos, rk ? o.b & ~RK_BIT : o.b, rk ? o.b & RK_BIT : o.op != w->settable, key))
		return false;
	if (o.op == w->settabup && (!upvalue_name(p, mem, o.a, table) || !strcmp(table, "_ENV")))
		table[0] = '\0';
	if (o.op != w->settabup)
		table_name(p, mem, o.a, pos, table);
	snprintf(ret, LUA_NAME_MAX, "%.120s%s%.120s", table, table[0] ? "." : "", key);
	return true;
}

bool lua_proto_defines(const struct lua_proto *p, struct memory *mem, u32 index, char ret[LUA_NAME_MAX])
{
	const struct ways *w = &ways[p->version - 501];

	for (u32 pos = 0; pos < p->sizecode; pos++) {
		struct operands o = decode(p, pos), next;
		u32 behind = pos + 1;

		if (o.op != w->closure || o.bx != index)
			continue;
		for (; p->version == 501 && behind < p->sizecode; behind++) {
			next = decode(p, behind);
			if (!is_capture(p, &next))
				break;
		}
		return stored_name(p, mem, behind, o.a, ret) || local_name(p, mem, o.a, behind, ret) ||
		       local_name(p, mem, o.a, pos + 1, ret);
	}
	return false;
}

static bool is_return(const struct lua_proto *p, u32 pos)
{
	const struct ways *w = &ways[p->version - 501];
	u32 op = decode(p, pos).op;

	return op >= w->first_return && op <= w->last_return;
}

static bool is_jumped_to(const struct lua_proto *p, u32 pos)
{
	for (u32 i = 0; i < p->sizecode; i++) {
		struct operands o = decode(p, i);

		if (o.op == dialect_of(p)->jmp && (s64)i + 1 + o.jump == pos)
			return true;
	}
	return false;
}

static void add_exit(struct lua_entry *e, u32 pos, bool tail)
{
	if (e->nexits < LUA_EXITS_MAX) {
		e->exit[e->nexits] = pos;
		e->tail[e->nexits] = tail;
	}
	e->nexits++;
}

/* Behind each tail call, and at the end of each function, stands a return, whether it is reached or not. */
bool lua_proto_entry(const struct lua_proto *p, struct lua_entry *ret)
{
	const struct ways *w = &ways[p->version - 501];

	*ret = (struct lua_entry){.begin = decode(p, 0).op == w->varargprep};
	for (u32 pos = 0; pos < p->sizecode; pos++) {
		bool tail = pos && decode(p, pos - 1).op == dialect_of(p)->tailcall;
		bool dead = pos + 1 == p->sizecode && pos && is_return(p, pos - 1) && !is_jumped_to(p, pos);

		if (decode(p, pos).op == dialect_of(p)->tailcall)
			add_exit(ret, pos, true);
		else if (is_return(p, pos) && !tail && !dead)
			add_exit(ret, pos, false);
	}
	return ret->begin < p->sizecode && !is_jumped_to(p, ret->begin);
}

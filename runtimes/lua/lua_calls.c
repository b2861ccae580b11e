/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "lua_proto.h"
#include "lua_states.h"
#include "lua_values.h"
#include "table.h"
#include "runtimes/lua_common/lua_callee.h"

#define STATES_MAX 256
#define INNER_MAX  65536 /* functions that one makes */

struct looking {
	const struct lua_image *image;
	struct lua_names *names;
	const struct runtime_process *p;
	u64 start, end; /* luaV_execute() */
	const char *pattern;
	u64 state[STATES_MAX];
	u32 nstates;
	u64 *protos;
	u32 n;
	struct table makers;     /* from a Proto to the one that makes it */
	struct lua_proto *maker; /* that was read last */
	struct error *(*add)(void *ctx, const struct runtime_callee *c);
	void *ctx;
};

static void add_state(void *ctx, u64 thread, u64 g)
{
	struct looking *k = ctx;

	if (k->nstates < STATES_MAX) {
		k->state[k->nstates++] = g;
		lua_names_see(k->names, g);
	}
}

/* The functions that it makes. */
static struct error *add_inner(struct looking *k, u64 proto)
{
	const struct lua_layout *l = k->image->layout;
	cleanup(free) u64 *inner = NULL;
	struct error *err = NULL;
	u64 array;
	u32 n;

	if (!memory_read(k->p->memory, &n, sizeof(n), proto + l->p_sizep.at) ||
	        !memory_read(k->p->memory, &array, sizeof(array), proto + l->p_p.at) || !n || n > INNER_MAX)
		return NULL;
	inner = calloc(n, sizeof(*inner));
	if (!inner)
		return &error_no_memory;
	if (!memory_read(k->p->memory, inner, n * sizeof(*inner), array))
		return NULL;
	for (u32 i = 0; !err && i < n; i++)
		if (inner[i])
			err = table_put(&k->makers, inner[i], proto);
	return err;
}

static struct error *add_proto(void *ctx, u64 proto)
{
	struct looking *k = ctx;
	struct error *err = grow(&k->protos, k->n, sizeof(*k->protos));

	if (err)
		return err;
	k->protos[k->n++] = proto;
	return add_inner(k, proto);
}

/* The number of a function among those that its maker makes. */
static bool index_of(const struct looking *k, u64 maker, u64 proto, u32 *ret)
{
	const struct lua_layout *l = k->image->layout;
	u64 array, one;
	u32 n;

	if (!memory_read(k->p->memory, &n, sizeof(n), maker + l->p_sizep.at) ||
	        !memory_read(k->p->memory, &array, sizeof(array), maker + l->p_p.at) || n > INNER_MAX)
		return false;
	for (u32 i = 0; i < n && memory_read(k->p->memory, &one, sizeof(one), array + 8ull * i); i++)
		if (one == proto) {
			*ret = i;
			return true;
		}
	return false;
}

/* A method, whose first argument is self, is "t:f". */
static void mark_method(const struct looking *k, const struct lua_proto *p, char *name)
{
	char first[16] = "", *dot = strrchr(name, '.');
	u64 text;

	if (dot && p->sizelocvars && memory_read(k->p->memory, &text, sizeof(text), p->locvars) &&
	        lua_string_read(p->version, k->p->memory, text, first, sizeof(first)) && !strcmp(first, "self"))
		*dot = ':';
}

static bool name_by_maker(struct looking *k, const struct lua_proto *p, char ret[LUA_NAME_MAX])
{
	const u64 *maker = table_get(&k->makers, p->addr);
	u32 index;

	if (!maker || !index_of(k, *maker, p->addr, &index))
		return false;
	if (!k->maker || k->maker->addr != *maker) {
		lua_proto_free(k->maker);
		k->maker = lua_proto_read(k->image, k->p->memory, *maker);
	}
	if (!k->maker || !lua_proto_defines(k->maker, k->p->memory, index, ret))
		return false;
	mark_method(k, p, ret);
	return true;
}

/* Of CallInfo, where its part of the stack begins: base, which is in front of savedpc in 5.2 and 5.3; from 5.4 func. */
static u16 call_at(const struct lua_image *image)
{
	const struct lua_vm *vm = &image->vm;

	if (vm->version >= 504)
		return vm->ci_func;
	return vm->version == 501 ? image->layout->ci_base.at : vm->ci_savedpc - 8;
}

static void add_exits(const struct looking *k, const struct lua_entry *e, u64 code, struct runtime_callee *c)
{
	const struct lua_vm *vm = &k->image->vm;

	for (u32 i = 0; i < e->nexits; i++)
		runtime_add_exit(
		        c, i < LUA_EXITS_MAX ? code + 4ull * e->exit[i] : 0, 4, i < LUA_EXITS_MAX && e->tail[i]);
	c->identity = 0xffffffffull << LUA_COOKIE_BITS | LUA_C_FUNCTION;
	c->place = (struct runtime_place){
	        .own = 2, .reg = RUNTIME_NO_REG, .top = vm->l_ci, .call = call_at(k->image), .bottom = vm->l_stack};
}

/*
 * As the instruction is read, the walk may take the function for one that its caller is about to call. But the register
 * of the CallInfo (5.1: of the lua_State) then points to where the position is, which is that of the instruction.
 */
static void add_proof(const struct looking *k, struct runtime_callee *c)
{
	const struct lua_vm *vm = &k->image->vm;

	for (u32 i = 0; i < RUNTIME_CALL_PROOF; i++) {
		c->proof[i].at = vm->version == 501 ? vm->l_savedpc : vm->ci_savedpc;
		c->proof[i].value = c->entry;
	}
	c->nproof = RUNTIME_CALL_PROOF;
}

static struct error *add_named(struct looking *k, const struct lua_proto *p, struct runtime_callee *c)
{
	struct frame_name name = {0};
	char defined[LUA_NAME_MAX];

	if (!lua_name_frame(k->names, k->p, c->at, 0, 1, &name))
		return NULL;
	if (name_by_maker(k, p, defined))
		snprintf(name.name, sizeof(name.name), "%s", defined);
	return lua_add_callee(c, &name, k->pattern, k->add, k->ctx);
}

static struct error *look_at(struct looking *k, u64 addr)
{
	struct lua_proto *p = lua_proto_read(k->image, k->p->memory, addr);
	struct runtime_callee c = {.bytes = 4, .nat = 1, .code_from = k->start, .code_to = k->end};
	struct lua_entry entry;
	struct error *err = NULL;
	u64 code;

	if (p && p->linedefined && lua_proto_entry(p, &entry) &&
	        memory_read(k->p->memory, &code, sizeof(code), addr + k->image->layout->p_code.at)) {
		c.entry = code + 4ull * entry.begin;
		c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, addr);
		c.at[0].detail = (u64)p->cookie << LUA_COOKIE_BITS | LUA_NO_POS;
		c.loose_detail = LUA_NO_POS | LUA_TAIL_CALLED;
		c.beside = LUA_STATE;
		add_exits(k, &entry, code, &c);
		add_proof(k, &c);
		lua_places(k->image, k->p->memory, p, &c);
		err = add_named(k, p, &c);
	}
	lua_proto_free(p);
	return err;
}

static struct error *look(struct looking *k)
{
	u8 type = k->image->vm.version >= 504 ? 10 : 9; /* LUA_TPROTO */
	struct error *err = lua_states(k->image, k->p, add_state, k);

	for (u32 i = 0; !err && i < k->nstates; i++)
		err = lua_objects(k->image, k->p, k->state[i], type, add_proto, k);
	for (u32 i = 0; !err && i < k->n; i++)
		err = look_at(k, k->protos[i]);
	return err;
}

struct error *lua_calls(const struct lua_image *image, u64 bias, struct lua_names *names,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	cleanup(free) struct looking *k = calloc(1, sizeof(*k));
	struct error *err;

	if (!k)
		return &error_no_memory;
	if (image->vm.version > 504 || !image->layout->l_g.size || !image->layout->p_p.size || !image->nranges)
		return NULL;
	*k = (struct looking){.image = image,
	        .names = names,
	        .p = p,
	        .start = image->ranges[0].start + bias,
	        .end = image->ranges[0].end + bias,
	        .pattern = pattern,
	        .add = add,
	        .ctx = ctx};
	err = look(k);
	lua_proto_free(k->maker);
	table_free(&k->makers);
	free(k->protos);
	return err;
}

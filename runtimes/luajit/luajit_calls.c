/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "luajit_proto.h"
#include "luajit_tasks.h"
#include "luajit_trace.h"
#include "luajit_values.h"
#include "luajit_vms.h"
#include "table.h"
#include "runtimes/lua_common/lua_callee.h"

#define GCT_PROTO  7 /* ~LJ_TPROTO */
#define FRAME_VARG 3 /* lj_frame.h: the link of a function with ... */
#define CODE_MAX   (1u << 20)
#define CODE_BATCH 256

struct looking {
	const struct luajit_image *image;
	struct luajit_names *names;
	const struct runtime_process *p;
	const char *pattern;
	u64 *protos;
	u32 n;
	struct table makers;        /* from a prototype to the one that makes its function */
	struct luajit_proto *maker; /* that was read last */
	struct error *(*add)(void *ctx, const struct runtime_callee *c);
	void *ctx;
};

static bool is_header(u32 instruction)
{
	return (u8)instruction >= LUAJIT_OP_FUNCF && (u8)instruction <= LUAJIT_OP_JFUNCV;
}

static bool is_tail(u8 op)
{
	return op == LUAJIT_OP_CALLMT || op == LUAJIT_OP_CALLT;
}

/* Instructions that leave the function. The interpreter has the base of what runs in rdx. */
static void find_exits(const struct looking *k, u64 proto, struct runtime_callee *c)
{
	const struct luajit_layout *l = k->image->layout;
	u32 code[CODE_BATCH], n = 0;

	if (!memory_read(k->p->memory, &n, sizeof(n), proto + l->proto_sizebc.at) || n > CODE_MAX)
		return;
	for (u32 from = 0; from < n; from += CODE_BATCH) {
		u32 here = n - from < CODE_BATCH ? n - from : CODE_BATCH;

		if (!memory_read(k->p->memory, code, 4ul * here, c->entry + 4ull * from)) {
			c->nexits = 0;
			return;
		}
		for (u32 i = 0; i < here; i++)
			if (is_tail((u8)code[i]) || ((u8)code[i] >= LUAJIT_OP_RETM && (u8)code[i] <= LUAJIT_OP_RET1))
				runtime_add_exit(c, c->entry + 4ull * (from + i), 4, is_tail((u8)code[i]));
	}
	c->identity = 3ull << LUAJIT_FUNCTION_BITS;
	c->place = (struct runtime_place){.own = 1,
	        .reg = DWREG_RDX,
	        .bottom = (u16)l->l_stack.at,
	        .moved = FRAME_VARG,
	        .half = !k->image->vm.gc64};
}

static struct error *add_maker(void *ctx, u64 maker, u64 inner)
{
	return table_put(&((struct looking *)ctx)->makers, inner, maker);
}

static struct error *keep_proto(void *ctx, u64 addr)
{
	struct looking *k = ctx;
	struct error *err = grow(&k->protos, k->n, sizeof(*k->protos));
	struct luajit_proto *pt;

	if (err)
		return err;
	k->protos[k->n++] = addr;
	pt = lua_asks_for_name(k->pattern) ? luajit_proto_read(k->image->layout, k->p->memory, addr) : NULL;
	if (!pt)
		return NULL;
	err = luajit_proto_inner(pt, add_maker, k);
	luajit_proto_free(pt);
	return err;
}

/* A function whose source is not there, as of a block of nginx.conf, is called as what makes it stores it. */
static void name_by_maker(struct looking *k, u64 proto, struct frame_name *ret)
{
	const u64 *maker = table_get(&k->makers, proto);
	char name[LUAJIT_NAME_MAX], *dot;
	struct luajit_proto *pt;

	if (!maker)
		return;
	if (!k->maker || k->maker->addr != *maker) {
		if (k->maker)
			luajit_proto_free(k->maker);
		k->maker = luajit_proto_read(k->image->layout, k->p->memory, *maker);
	}
	if (!k->maker || !luajit_proto_defines(k->maker, k->p->memory, proto, name))
		return;
	dot = strrchr(name, '.');
	pt = dot ? luajit_proto_read(k->image->layout, k->p->memory, proto) : NULL;
	if (pt && luajit_proto_is_method(pt))
		*dot = ':';
	if (pt)
		luajit_proto_free(pt);
	snprintf(ret->name, sizeof(ret->name), "%.400s", name);
}

static struct error *add_proto(struct looking *k, u64 proto)
{
	struct runtime_callee c = {.entry = proto + k->image->layout->proto_size.at,
	        .bytes = 4,
	        .nat = 1,
	        .unseen = "calls in compiled traces are not seen: `yrt lua-flame` shows their time"};
	struct frame_name name = {0};
	u32 header;

	if (!memory_read(k->p->memory, &header, sizeof(header), c.entry) || !is_header(header))
		return NULL;
	/* A call has no position yet; an exit from a trace that goes on at the header has. */
	c.at[0].where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, proto);
	c.at[0].detail = luajit_detail(LUAJIT_LUA, LUAJIT_NO_POS, luajit_cookie(LUAJIT_OP_PATCHED, header));
	if (!luajit_name_frame(k->names, k->p, c.at, 0, 1, &name))
		return NULL;
	if (!*name.name)
		name_by_maker(k, proto, &name);
	find_exits(k, proto, &c);
	luajit_places(k->image, k->p->memory, proto, &c);
	return lua_add_callee(&c, &name, k->pattern, k->add, k->ctx);
}

struct error *luajit_calls(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct looking k = {.image = image, .names = names, .p = p, .pattern = pattern, .add = add, .ctx = ctx};
	struct error *err = luajit_objects(image, bias, p, GCT_PROTO, keep_proto, &k);

	for (u32 i = 0; !err && i < k.n; i++)
		err = add_proto(&k, k.protos[i]);
	if (k.maker)
		luajit_proto_free(k.maker);
	table_free(&k.makers);
	free(k.protos);
	return err;
}

struct inlining {
	const struct luajit_image *image;
	struct luajit_names *names;
	const struct runtime_process *p;
	u64 proto;
	void (*add)(void *ctx, const char *into);
	void *ctx;
};

/* Does it, from another function on, call this one, and not just return to it? */
static bool calls(const struct luajit_trace *t, u64 proto)
{
	bool ret = false;

	for (u32 i = 0; i < t->nconstants; i++) {
		if (t->constants[i].addr == proto && !t->constants[i].closure)
			return false;
		ret |= t->constants[i].addr == proto;
	}
	return ret && t->startpt != proto;
}

static void add_into(const struct inlining *in, u64 proto)
{
	struct frame frame = {.where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, proto)};
	struct frame_name name = {0};
	char text[NAME_MAX_BYTES];
	u32 header;

	if (!memory_read(in->p->memory, &header, sizeof(header), proto + in->image->layout->proto_size.at))
		return;
	frame.detail = luajit_detail(LUAJIT_LUA, LUAJIT_NO_POS, luajit_cookie(LUAJIT_OP_PATCHED, header));
	if (!luajit_name_frame(in->names, in->p, &frame, 0, 1, &name))
		return;
	lua_callee_name(&name, false, text, sizeof(text));
	in->add(in->ctx, text);
}

static void look_trace(void *ctx, const struct luajit_trace *t)
{
	const struct inlining *in = ctx;

	if (calls(t, in->proto))
		add_into(in, t->startpt);
}

void luajit_calls_inlined(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, const struct runtime_callee *of, void (*add)(void *ctx, const char *into),
        void *ctx)
{
	struct inlining in = {.image = image,
	        .names = names,
	        .p = p,
	        .proto = of->entry - image->layout->proto_size.at,
	        .add = add,
	        .ctx = ctx};
	struct luajit_vms vms = {0};
	struct error *err = luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms);

	for (u32 i = 0; !err && i < vms.n; i++)
		luajit_traces_each(image, p->memory, vms.g[i], look_trace, &in);
	error_free(err);
	free(vms.g);
}
